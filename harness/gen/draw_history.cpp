#include "harness/gen/draw_history.h"

#include "harness/gen/draw_formats.h"
#include "harness/gen/history_settings.h"
#include "harness/gen/history_writer.h"

namespace kv {

Case draw_history(ChoiceSource& choices, const HistoryScope& scope) {
  choices.enter(Part::kSwarm);
  const HistoryAxes axes = draw_axes(choices, scope);
  choices.enter(Part::kShape);
  Case c = draw_history_settings(choices, scope, axes);
  // Mostly short: many short histories find more than few long ones.
  const uint64_t most = choices.pick<uint64_t>({20, 60, 60, 120, 200});
  const uint64_t count = choices.between(1, std::min<uint64_t>(most, scope.operations_max));
  HistoryWriter writer(choices, scope, axes, c);
  while (c.ops.size() < count) {
    choices.enter(Part::kOperation);
    writer.write_one();
  }
  choices.enter(Part::kExec);
  if (scope.formats) draw_history_formats(choices, scope.offered, c);
  return c;
}

}  // namespace kv
