#include "harness/gen/draw.h"

#include <algorithm>

#include "harness/gen/draw_exec.h"
#include "harness/gen/draw_formats.h"
#include "harness/gen/draw_operations.h"
#include "harness/gen/draw_settings.h"
#include "harness/gen/swarm.h"

namespace kv {
namespace {

void keep_small(const DrawLimits& limits, Shape& shape) {
  shape.layers = std::min(shape.layers, limits.layers);
  shape.head_dim_k = std::min(shape.head_dim_k, limits.head_dim);
  shape.head_dim_v = std::min(shape.head_dim_v, limits.head_dim);
  if (shape.query_heads <= limits.query_heads) return;
  const uint32_t group = std::min(shape.query_heads / shape.kv_heads, limits.query_heads);
  shape.kv_heads = limits.query_heads / group;
  shape.query_heads = shape.kv_heads * group;
}

/// What leave_out() cannot take away afterwards: the operations are drawn around it.
void keep_to(const OfferSet& offered, Swarm& swarm) {
  swarm.splits = swarm.splits && offered.has(feature("split_forced"));
  swarm.trees = swarm.trees && offered.has(feature("verify_tree"));
  swarm.holes = swarm.holes && offered.has(feature("padding_holes"));
  swarm.cascades = offered.has(feature("cascade"));
  swarm.graphs = offered.has(feature("graph"));
  swarm.padding_left = offered.has(feature("padding_left"));
  swarm.padding_right = offered.has(feature("padding_right"));
}

}  // namespace

Case draw(ChoiceSource& choices, const DrawOptions& options) {
  choices.enter(Part::kSwarm);
  Swarm swarm = draw_swarm(choices);
  keep_to(options.offered, swarm);
  Case c = draw_settings(choices, swarm);
  leave_out(options.offered, c);
  keep_small(options.limits, c.shape);
  draw_operations(choices, swarm, options.limits, c);
  choices.enter(Part::kExec);
  draw_exec(choices, swarm, options.variants, c);
  draw_formats(choices, options.offered, c);
  return c;
}

}  // namespace kv
