#include "harness/history/token_path.h"

#include "harness/core/philox.h"

namespace kv {
namespace {

// Uses of the data seed, kept apart by the upper half of the counter.
constexpr uint64_t kRootUse = 0x70617468;   // "path"
constexpr uint64_t kTokenUse = 0x746f6b65;  // "toke"

// Zero means "no token" to the data function.
uint64_t nonzero(uint64_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

uint64_t path_root(uint64_t data_seed, uint64_t side_input) {
  return nonzero(Philox{data_seed}.word(kRootUse, side_input));
}

uint64_t path_next(uint64_t history, uint64_t token, uint64_t slot) {
  return nonzero(Philox{history}.word(token, slot));
}

uint64_t fresh_token(uint64_t data_seed, RequestId request, uint64_t count) {
  return Philox{Philox{data_seed}.word(kTokenUse, request.value)}.word(kTokenUse, count);
}

}  // namespace kv
