// Purpose: which axes a case may use at all, and how much it may cost.
// Contract: each axis is off in half of the cases (Groce et al., Swarm testing, ISSTA 2012): a
// fault that one axis hides shows when it is off.
#pragma once

#include <cstdint>

#include "harness/gen/choice_source.h"

namespace kv {

struct Swarm {
  bool types, wide_heads, sharing, layers, scales;     // shape
  bool softcaps, alibi, sinks;                         // logits
  bool windows, top_left, masks, trees, holes;         // mask
  bool pages, orders, layouts, poisons, slack;         // pool
  bool padding, batches, chunks, cancels, empty_rows;  // histories
  bool odd_queries, attend_only, append_only, prefixes, offsets;
  bool designs;
  bool schedules, roundings, repeats, splits, variants;  // execution

  // What the plugin offers; no axes of their own.
  bool cascades = true;  // one case in eight has one
  bool padding_left = true, padding_right = true;
  bool graphs = true;  // of the cases that repeat their calls, some launch a graph

  /// Query rows (in tiles of 16) * slots (in tiles of 16) * query heads * (K + V dimension).
  uint64_t budget = 0;
};

inline Swarm draw_swarm(ChoiceSource& choices) {
  Swarm s{};
  for (bool* axis :
       {&s.types,       &s.wide_heads,  &s.sharing,  &s.layers,   &s.scales,     &s.softcaps,
        &s.alibi,       &s.sinks,       &s.windows,  &s.top_left, &s.masks,      &s.trees,
        &s.holes,       &s.pages,       &s.orders,   &s.layouts,  &s.poisons,    &s.slack,
        &s.padding,     &s.batches,     &s.chunks,   &s.cancels,  &s.empty_rows, &s.odd_queries,
        &s.attend_only, &s.append_only, &s.prefixes, &s.offsets,  &s.designs,    &s.schedules,
        &s.roundings,   &s.repeats,     &s.splits,   &s.variants}) {
    *axis = choices.one_in(2);
  }
  // Mostly small: many short cases find more than few long ones.
  constexpr uint64_t kSmall = 1'500'000;
  s.budget =
      choices.pick({kSmall, kSmall, kSmall, kSmall, kSmall, kSmall, kSmall, kSmall, kSmall, kSmall,
                    kSmall, kSmall, 4 * kSmall, 4 * kSmall, 4 * kSmall, 12 * kSmall});
  return s;
}

}  // namespace kv
