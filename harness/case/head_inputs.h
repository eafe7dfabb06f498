// Purpose: what a query head brings along besides its rows: its ALiBi slope and its sink logit.
// Contract: pure functions of (data seed, layer, head), without libm. Slopes lie in (2^-9, 1], far
// from each other whatever the number of heads; sinks in [-2, 10), where the log-sum-exp of rows
// of 1 to 20,000 ordinary keys lies: a sink that is lost or counted twice shows.
// Example: if (c.shape.sinks) use(sink_logit(c, {.layer = 0, .head = 3}));
#pragma once

#include "harness/case/case.h"

namespace kv {

struct HeadPlace {
  uint32_t layer = 0, head = 0;  // query head
};

float alibi_slope(const Case& c, HeadPlace where);
float sink_logit(const Case& c, HeadPlace where);

}  // namespace kv
