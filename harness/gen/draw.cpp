#include "harness/gen/draw.h"

#include "harness/gen/draw_exec.h"
#include "harness/gen/draw_operations.h"
#include "harness/gen/draw_settings.h"
#include "harness/gen/swarm.h"

namespace kv {

Case draw(ChoiceSource& choices, const DrawOptions& options) {
  const Swarm swarm = draw_swarm(choices);
  Case c = draw_settings(choices, swarm);
  draw_operations(choices, swarm, c);
  draw_exec(choices, swarm, options.variants, c);
  return c;
}

}  // namespace kv
