// Purpose: token ids for the requests of a trace, which records lengths and block ids alone.
// Contract: two prompts begin with the same tokens exactly as far as their block ids agree; tokens
// of prompts without ids, and sampled ones, are unlike all others. Blocks are numbered in the order
// in which they are first asked for, so any 64-bit ids will do.
// Example:  TraceTokens tokens; tokens.prompt(trace[i], i, buffer);
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "harness/trace/trace.h"
#include "impl/include/kvattn/units.h"

namespace kv {

class TraceTokens {
 public:
  /// Replaces `out` by the prompt of the request that has this index in the trace.
  void prompt(const TraceRequest& request, uint64_t index, std::vector<kvattn::Token>& out);
  /// The token that request `index` sampled for its slot.
  static kvattn::Token sampled(uint64_t index, uint64_t slot);

 private:
  std::unordered_map<uint64_t, uint64_t> numbers_;  // of blocks; looked up only
};

}  // namespace kv
