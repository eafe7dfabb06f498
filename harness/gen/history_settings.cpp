#include "harness/gen/history_settings.h"

#include <algorithm>

namespace kv {
namespace {

constexpr uint32_t kPagesMin = 7, kPagesMax = 64;

EngineLevel draw_engine(ChoiceSource& choices, const HistoryAxes& axes, const Case& c) {
  const uint32_t page = c.pool.page_slots;
  EngineLevel e;
  e.batch_slots = static_cast<uint32_t>(choices.between(2, 6));
  e.request_max = e.batch_slots + static_cast<uint32_t>(choices.between(0, 4));
  const uint32_t pages = static_cast<uint32_t>(choices.between(3, 8));
  e.context_limit = pages * page - choices.pick<uint32_t>({0, 0, 1, page - 1});
  e.step_tokens_max =
      std::max(1u, choices.pick<uint32_t>({4 * page, 4 * page, page, page + 1, page - 1, 64}));
  if (axes.async) e.async_depth = choices.pick<uint32_t>({1, 1, 2, 3});
  e.prefix_cache = !choices.one_in(8);
  if (axes.preemption) {
    e.host_page_count = choices.pick<uint32_t>({c.pool.page_count, 4, 1, 0, 2 * pages});
  }
  if (axes.drafts) {
    e.draft_layers = 1;
    e.draft_page_count = choices.pick<uint32_t>({c.pool.page_count, 2 * pages, kPagesMin});
  }
  return e;
}

void draw_groups(ChoiceSource& choices, Case& c) {
  const int64_t page = c.pool.page_slots;
  const auto window = [&] {
    return choices.pick<int64_t>({page, page - 1, page + 1, 2 * page, 1, 0, 3 * page - 1});
  };
  EngineLevel& e = *c.engine;
  if (choices.one_in(3)) {
    e.groups = {{.layers = c.shape.layers, .window_left = window()}};
  } else {
    const bool all_narrow = choices.one_in(4);
    c.shape.layers = std::max(c.shape.layers, 2u);
    e.groups = {{.layers = 1, .window_left = all_narrow ? window() : -1},
                {.layers = c.shape.layers - 1, .window_left = window()}};
  }
}

}  // namespace

HistoryAxes draw_axes(ChoiceSource& choices, const HistoryScope& scope) {
  HistoryAxes a{};
  for (bool* axis :
       {&a.sharing, &a.forks, &a.beams, &a.speculation, &a.drafts, &a.windows, &a.shifts,
        &a.preemption, &a.saving, &a.eviction, &a.defrag, &a.hostile, &a.failures, &a.side_inputs,
        &a.offsets, &a.owners, &a.padding, &a.async, &a.reuse}) {
    *axis = choices.one_in(2);
  }
  a.drafts = a.drafts && scope.drafts;
  a.windows = a.windows && choices.one_in(2);
  return a;
}

Case draw_history_settings(ChoiceSource& choices, const HistoryScope& scope,
                           const HistoryAxes& axes) {
  Case c;
  c.shape.layers = static_cast<uint32_t>(choices.between(1, 2));
  c.shape.query_heads = c.shape.kv_heads = scope.attends ? 2 : 1;
  c.shape.head_dim_k = c.shape.head_dim_v = scope.attends ? 64 : 4;
  c.pool.page_slots = choices.pick<uint32_t>({4, 4, 2, 8, 1, 16});
  c.pool.page_count = static_cast<uint32_t>(
      choices.one_in(4) ? choices.between(kPagesMin, kPagesMax) : choices.between(kPagesMin, 16));
  c.pool.overcommit = choices.pick({1.0, 2.0, 4.0, 1.5, 16.0});
  if (scope.attends) {
    c.shape.softcap = choices.pick({0.0f, 0.0f, 0.0f, 2.0f, 30.0f});
    c.shape.alibi = choices.one_in(4);
    c.shape.sinks = choices.one_in(4);
  }
  c.data.seed = choices.below(uint64_t{1} << 32);
  c.engine = draw_engine(choices, axes, c);
  if (axes.windows) draw_groups(choices, c);
  return c;
}

}  // namespace kv
