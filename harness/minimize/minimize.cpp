#include "harness/minimize/minimize.h"

#include "harness/minimize/passes.h"

namespace kv {
namespace {

// Cheap and far-reaching ones first: what they remove need not be shrunk.
constexpr void (*kPasses[])(Shrinker&) = {
    drop_tail,
    drop_requests,
    drop_requests_with_room,
    drop_operations,
    drop_rows,
    drop_beams,
    fold_steps,
    plain_engine,
    plain_operations,
    shrink_heads,
    shrink_dimensions,
    simplify_design,
    drop_settings,
    shrink_pages,
    shrink_history_pages,
    shrink_contexts,
    shrink_lengths_by_pages,
    merge_pages,
    shrink_numbers,
    drop_overrides,
    number_requests,
};

// Until a whole round changes nothing.
bool shrink(Shrinker& shrinker) {
  for (;;) {
    const uint64_t before = shrinker.accepted();
    for (const auto pass : kPasses) pass(shrinker);
    if (shrinker.spent()) return false;
    if (shrinker.accepted() == before) return true;
  }
}

}  // namespace

Result<Minimized> minimize(const Case& from, const MinimizeHooks& hooks,
                           const MinimizeLimits& limits) {
  Shrinker shrinker(from, hooks, limits);
  bool complete = shrink(shrinker);
  const uint64_t before = shrinker.accepted();
  make_explicit(shrinker);
  if (shrinker.accepted() != before) complete = shrink(shrinker);
  if (shrinker.error()) return *shrinker.error();
  return Minimized{shrinker.best(), shrinker.attempts(), shrinker.accepted(), complete};
}

}  // namespace kv
