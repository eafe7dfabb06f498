#include "harness/history/budget_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/case/pages.h"

namespace kv {
namespace {

uint64_t least_pages(const Model& model, uint64_t slots_max) {
  uint64_t pages = 0;
  for (const CacheGroup& group : model.groups()) {
    const uint64_t seen =
        group.window_left < 0 ? slots_max : static_cast<uint64_t>(group.window_left) + 1;
    pages += pages_for(std::min(slots_max, seen), model.history_case().pool.page_slots);
  }
  return pages;
}
uint64_t most_pages(const Model& model, uint64_t slots_max) {
  return pages_for(slots_max, model.history_case().pool.page_slots) * model.groups().size();
}

}  // namespace

uint64_t budget_of(const Pool& pool) {
  return static_cast<uint64_t>(pool.overcommit * pool.page_count);
}

MaybeFinding check_budget(const Model& model) {
  uint64_t pages = 0;
  for (const auto& [id, r] : model.requests()) {
    if (r.life == Life::kActive) pages += least_pages(model, r.slots_max);
  }
  const Pool& pool = model.history_case().pool;
  if (pages <= budget_of(pool)) return std::nullopt;
  return HistoryFinding{
      .check = CheckClass::kAnswer,
      .message = fmt::format("the worst cases of the active requests take {} pages or more, "
                             "expected at most {}: {} times the pool of {}",
                             pages, budget_of(pool), pool.overcommit, pool.page_count)};
}

bool must_have_room(const Model& model, uint64_t slots_max, bool is_new) {
  uint64_t pages = most_pages(model, slots_max), active = 0;
  for (const auto& [id, r] : model.requests()) {
    if (r.life != Life::kActive) continue;
    ++active;
    pages += most_pages(model, r.slots_max);
  }
  const Pool& pool = model.history_case().pool;
  const EngineLevel& engine = model.engine();
  return pages <= std::min<uint64_t>(budget_of(pool), pool.page_count) &&
         active < engine.batch_slots && (!is_new || model.requests().size() < engine.request_max);
}

}  // namespace kv
