// Family liveness: one parameter changed: scale, causality or left window.
// Holds: each side within its own bound, so that results which stayed where they were are wrong
// now; and the same bytes in the cache, which follow none of them, of a deterministic plugin.
// Of: every case whose drawn parameter may change; some designs are exact for one scale only.
// Kills: none alone; kept because a parameter that is ignored shows in every case, not in those
// alone where it moves a bound, and nothing else asks whether append follows mask or scale.
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const bool has_exact_scale =
      c.data.design == Design::kDyadic || c.data.design == Design::kSubsetSelect;
  switch (choices.below(3)) {
    case 0:
      if (has_exact_scale) return false;
      c.shape.scale = c.shape.scale == 0 ? 0.25f : -1.5f * c.shape.scale;
      return true;
    case 1:
      c.mask.causal = c.mask.causal == Causal::kNone ? Causal::kBottomRight : Causal::kNone;
      return true;
    default:
      c.mask.window_left = c.mask.window_left < 0 ? static_cast<int64_t>(choices.below(40)) : -1;
      return true;
  }
}

}  // namespace

constexpr Relation liveness = {
    .name = "liveness",
    .purpose = "one parameter changed: scale, causality or window",
    .finds = "a parameter that is ignored or remembered from the call before",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .same_cache = true,
    .change = change};

}  // namespace kv::families
