#include "harness/gen/choice_source.h"

#include "harness/core/check.h"

namespace kv {
namespace {

void check_bound(uint64_t bound) { KV_CHECK(bound >= 1, "a choice among nothing"); }

}  // namespace

uint64_t PhiloxSource::below(uint64_t bound) {
  check_bound(bound);
  const uint64_t word = philox_.word(index_, used_++);
  return static_cast<uint64_t>(static_cast<unsigned __int128>(word) * bound >> 64);
}

uint64_t BytesSource::below(uint64_t bound) {
  check_bound(bound);
  uint64_t value = 0;
  for (uint64_t rest = bound - 1; rest > 0; rest >>= 8) {
    const uint64_t byte = bytes_.empty() ? 0 : bytes_.front();
    if (!bytes_.empty()) bytes_ = bytes_.subspan(1);
    value = value << 8 | byte;
  }
  return value % bound;
}

uint64_t ListSource::below(uint64_t bound) {
  check_bound(bound);
  return used_ < choices_.size() ? choices_[used_++] % bound : 0;
}

}  // namespace kv
