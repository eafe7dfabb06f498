#include "harness/case/history.h"

#include <limits>

#include "harness/core/check.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

// Uses of the data seed, kept apart by the upper half of the counter.
constexpr uint64_t kRootUse = 0x726f6f74;       // "root"
constexpr uint64_t kStreamUse = 0x73747265;     // "stre"
constexpr uint64_t kTokenlessUse = 0x6e6f6e65;  // "none"

// Zero means "no token" in Slot::previous.
uint64_t nonzero(uint64_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

void Streams::admit(const op::Admit& admit) {
  Stream stream;
  stream.seed = Philox{seed_}.word(kStreamUse, admit.request.value);
  stream.side_input = admit.side_input;
  if (admit.prefix_of) {
    KV_CHECK(streams_.contains(*admit.prefix_of), "prefix_of names a request never admitted");
    stream.prefix_of = *admit.prefix_of;
    stream.prefix_tokens = admit.prefix_tokens;
  }
  const bool inserted = streams_.emplace(admit.request, stream).second;
  KV_CHECK(inserted, "a request is admitted twice");
}

uint64_t Streams::root(RequestId request) const {
  const auto found = streams_.find(request);
  KV_CHECK(found != streams_.end(), "root of a request never admitted");
  return nonzero(Philox{seed_}.word(kRootUse, found->second.side_input));
}

Streams::Segment Streams::segment_at(RequestId request, uint64_t token) const {
  uint64_t end = std::numeric_limits<uint64_t>::max();
  for (;;) {
    const auto found = streams_.find(request);
    KV_CHECK(found != streams_.end(), "token of a request never admitted");
    const Stream& stream = found->second;
    if (token >= stream.prefix_tokens) return {.stream = stream.seed, .end = end};
    end = std::min(end, stream.prefix_tokens);
    request = stream.prefix_of;
  }
}

uint64_t Streams::next(uint64_t history, uint64_t stream, uint64_t token) {
  return nonzero(Philox{history}.word(stream, token));
}

uint64_t tokenless_history(uint64_t data_seed, RequestId request, int64_t slot) {
  const uint64_t key = Philox{data_seed}.word(kTokenlessUse, request.value);
  return nonzero(Philox{key}.word(kTokenlessUse, static_cast<uint64_t>(slot)));
}

}  // namespace kv
