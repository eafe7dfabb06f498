// Purpose: the one generator of cases. Whoever needs a case draws it here: `kverify check`, the
// properties, the fuzzers.
// Contract: total and lawful: whatever the source answers, Timeline::create accepts the case, and
// it costs the CPU device about a millisecond (mostly) to ten. Relations are drawn, not sizes:
// lengths equal to, one off, multiples of, coprime to pages and tiles; group against KV heads; page
// count against need. Axes are switched off case by case (swarm testing), so that rare settings
// meet each other. The same choices give the same case on every machine; other variants
// change the forced variant and nothing else.
// Example:  PhiloxSource choices(seed, index);  Case c = draw(choices);
#pragma once

#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/offers.h"
#include "harness/gen/choice_source.h"

namespace kv {

/// How large a case may be, beyond what its budget allows.
struct DrawLimits {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t steps = 10, requests = 5;
  uint32_t slots = kNone, queries = kNone;  // of one request, of one row
  uint32_t query_heads = kNone, head_dim = kNone, layers = kNone;
};

struct DrawOptions {
  std::vector<std::string> variants = {};  // of the plugin, that a case may force
  OfferSet offered = OfferSet::all();      // what the plugin offers; the rest is not drawn
  DrawLimits limits = {};
};

Case draw(ChoiceSource& choices, const DrawOptions& options = {});

}  // namespace kv
