#include "harness/relation/draw_related.h"

#include "harness/relation/families.h"

namespace kv {

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

Case draw_related(ChoiceSource& choices, const DrawOptions& options) {
  Case c = draw(choices, options);
  // With logits far below 0 whatever stands for -inf and is not shows (BUG_CLASSES, MR5).
  if (choices.one_in(6)) shift_logits(choices, c);
  if (!choices.one_in(3)) return c;
  const uint64_t number = choices.below(relations().size());
  relate(c, number, choices.below(uint64_t{1} << 32));
  return c;
}

}  // namespace kv
