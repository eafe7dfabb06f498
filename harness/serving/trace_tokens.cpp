#include "harness/serving/trace_tokens.h"

namespace kv {
namespace {

// Indices are below 2^20, slots below 2^24, numbers of blocks below 2^40.
constexpr uint64_t kPromptBit = uint64_t{1} << 62, kSampledBit = uint64_t{1} << 63;

uint64_t place(uint64_t index, uint64_t slot) { return (index << 32) | slot; }

}  // namespace

void TraceTokens::prompt(const TraceRequest& request, uint64_t index,
                         std::vector<kvattn::Token>& out) {
  out.resize(request.prompt_tokens);
  uint64_t base = 0;
  for (uint64_t slot = 0; slot < out.size(); ++slot) {
    if (request.blocks.empty()) {
      out[slot] = kvattn::Token{kPromptBit | place(index, slot)};
      continue;
    }
    const uint64_t within = slot % kTraceBlockTokens;
    if (within == 0) {
      const uint64_t id = request.blocks[slot / kTraceBlockTokens];
      base = numbers_.try_emplace(id, numbers_.size()).first->second * kTraceBlockTokens;
    }
    out[slot] = kvattn::Token{base + within};
  }
}

kvattn::Token TraceTokens::sampled(uint64_t index, uint64_t slot) {
  return kvattn::Token{kSampledBit | place(index, slot)};
}

}  // namespace kv
