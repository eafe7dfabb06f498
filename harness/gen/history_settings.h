// Purpose: the parts of a history that are settings: pool, groups, limits; and its stress axes.
// Contract: total; pools of 7 to 64 pages; see draw_history.h.
#pragma once

#include "harness/gen/draw_history.h"

namespace kv {

/// What a history may do at all.
struct HistoryAxes {
  bool sharing, forks, beams, speculation, drafts, windows, shifts, preemption, saving;
  bool eviction, defrag, hostile, failures, side_inputs, offsets, owners, padding, async, reuse;
};

HistoryAxes draw_axes(ChoiceSource& choices, const HistoryScope& scope);

/// Everything but the operations.
Case draw_history_settings(ChoiceSource& choices, const HistoryScope& scope,
                           const HistoryAxes& axes);

}  // namespace kv
