// Purpose: several completions of one prompt: encoded once and forked, or encoded again for each.
// Contract: both ways serve the same tokens and are judged after every operation; outputs of all
// decode steps and the K and V of all slots are kept, and must be the same bits. Prefix caches are
// off: nothing else shares. The caller takes the time. Example:
//   const Case c = fork_case(options);
//   Completions a = complete_forked(c, options, engine), b = complete_encoded(c, options, other);
//   a.outputs == b.outputs && a.stored == b.stored
#pragma once

#include "harness/history/judge.h"

namespace kv {

struct ForkOptions {
  uint32_t completions = 4;     // at least 1
  uint64_t prompt_tokens = 64;  // at least 1
  uint64_t output_tokens = 16;  // of each; the last is never appended
  uint32_t chunk_tokens = 512, page_slots = 16;
  uint64_t seed = 1;
  Conventions conventions = {};  // of the engine
};

struct Completions {
  MaybeFinding finding;
  uint64_t projected = 0;  // tokens whose K and V the engine was given, in each layer
  uint64_t steps = 0;
  uint64_t pages = 0;                           // held at the end
  std::vector<std::vector<std::byte>> outputs;  // of each decode step
  std::vector<std::byte> stored;                // K and V of all slots of all requests
};

Case fork_case(const ForkOptions& options);
Completions complete_forked(const Case& c, const ForkOptions& options, Engine& engine);
Completions complete_encoded(const Case& c, const ForkOptions& options, Engine& engine);

}  // namespace kv
