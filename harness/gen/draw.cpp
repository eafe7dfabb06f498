#include "harness/gen/draw.h"

#include "harness/gen/draw_exec.h"
#include "harness/gen/draw_operations.h"
#include "harness/gen/draw_settings.h"
#include "harness/gen/swarm.h"

namespace kv {

Case draw(ChoiceSource& choices, const DrawOptions& options) {
  Swarm swarm = draw_swarm(choices);
  swarm.splits = swarm.splits && options.offered.has(Axis::kSplit);
  swarm.trees = swarm.trees && options.offered.has(Axis::kTree);
  swarm.holes = swarm.holes && options.offered.has(Axis::kPaddingHoles);
  Case c = draw_settings(choices, swarm);
  leave_out(options.offered, c);
  draw_operations(choices, swarm, c);
  draw_exec(choices, swarm, options.variants, c);
  return c;
}

}  // namespace kv
