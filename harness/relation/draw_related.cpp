#include "harness/relation/draw_related.h"

#include <algorithm>

#include "harness/case/timeline.h"
#include "harness/relation/families/logit_shift.h"

namespace kv {
namespace {

/// States that saw nothing, beside logits far below 0: splits before a window, tiles that some rows
/// of a block do not see. One without the other shows nothing.
void empty_some_states(ChoiceSource& choices, const OfferSet& offered, Case& c) {
  Case changed = c;
  const uint32_t split = choices.pick<uint32_t>({16, c.pool.page_slots, 32});
  const auto window = choices.pick<int64_t>({1, 0, 7, 16, 33});
  const bool splits = choices.one_in(2), windows = choices.one_in(2);
  if (splits && offered.has(feature("split_forced")) && c.exec.split_slots == 0)
    changed.exec.split_slots = std::max(split, 16u);
  if (windows && offered.has(feature("window_left")) && c.mask.window_left < 0)
    changed.mask.window_left = window;
  if (Timeline::create(changed).ok()) c = std::move(changed);
}

bool has_company(const Case& c) {
  return std::any_of(c.ops.begin(), c.ops.end(), [](const Op& op) {
    const auto* step = std::get_if<op::Step>(&op);
    return step != nullptr && step->rows.size() > 1;
  });
}

/// Any of them; requests that run together are asked more often what they do alone.
uint64_t draw_relation(ChoiceSource& choices, const Case& c) {
  const auto all = relations();
  const uint64_t number = choices.below(all.size());
  if (!choices.one_in(3) || !has_company(c)) return number;
  const auto alone =
      std::find_if(all.begin(), all.end(), [](const Relation& r) { return r.name == "alone"; });
  return static_cast<uint64_t>(alone - all.begin());
}

}  // namespace

bool relate(Case& c, uint64_t number, uint64_t seed) {
  const auto all = relations();
  c.exec.relation_seed = seed;
  for (size_t i = 0; i < all.size(); ++i) {
    c.exec.relation = all[(number + i) % all.size()].name;
    const auto image = image_of(c);
    if (image.ok() && image->has_value()) return true;
  }
  c.exec.relation.clear();
  c.exec.relation_seed = 0;
  return false;
}

Case draw_of_family(ChoiceSource& choices, const Relation& relation, const DrawOptions& options) {
  constexpr int kDraws = 8;
  Case c;
  for (int i = 0; i < kDraws; ++i) {
    c = draw(choices, options);
    choices.enter(Part::kRelation);
    c.exec.relation = relation.name;
    c.exec.relation_seed = choices.below(uint64_t{1} << 32);
    const auto image = image_of(c);
    if (image.ok() && image->has_value()) return c;
  }
  c.exec.relation.clear();
  c.exec.relation_seed = 0;
  return c;
}

Case draw_related(ChoiceSource& choices, const DrawOptions& options) {
  Case c = draw(choices, options);
  choices.enter(Part::kRelation);
  // With logits far below 0 whatever stands for -inf and is not shows: a maximum that starts at 0.
  if (choices.one_in(6) && shift_logits(choices, c)) empty_some_states(choices, options.offered, c);
  if (!choices.one_in(3)) return c;
  const uint64_t number = draw_relation(choices, c);
  relate(c, number, choices.below(uint64_t{1} << 32));
  return c;
}

}  // namespace kv
