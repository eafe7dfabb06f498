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

}  // namespace

Case draw(ChoiceSource& choices, const DrawOptions& options) {
  choices.enter(Part::kSwarm);
  Swarm swarm = draw_swarm(choices);
  swarm.splits = swarm.splits && options.offered.has(Axis::kSplit);
  swarm.trees = swarm.trees && options.offered.has(Axis::kTree);
  swarm.holes = swarm.holes && options.offered.has(Axis::kPaddingHoles);
  swarm.cascades = options.offered.has(Axis::kCascade);
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
