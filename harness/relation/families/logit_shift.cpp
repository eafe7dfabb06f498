// Family logit_shift: all logits lower by 20, 120 or 5,000, or higher by 80; the case itself is the
// rung of 0.
// Holds: each side within its own bound; the reference moves the LSE by the shift and leaves O.
// Bits may differ: exp of other arguments rounds otherwise. Of: designed data of 16 bits and more
// whose logits can be moved exactly: no rotation (it would move each logit by another amount), no
// softcap, a scale that is not tiny. Kills: none alone; kept because it makes a stand-in for -inf
// visible in every case.
#include "harness/relation/families/logit_shift.h"

#include <cmath>

#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv {

bool shift_logits(ChoiceSource& choices, Case& c) {
  const bool turns = c.shape.rope.pairing != RopePairing::kNone;
  const bool applies = !turns && families::is_designed(c) && c.data.view.logit_shift == 0 &&
                       c.data.view.key_exponent == 0 && dtype_bytes(c.shape.kv_dtype) > 1 &&
                       std::abs(c.shape.scale) > 0.01f && c.shape.softcap == 0;
  if (applies) c.data.view.logit_shift = choices.pick({-20.0, -120.0, -5000.0, 80.0});
  return applies;
}

namespace families {
namespace {

bool change(ChoiceSource& choices, Image& image) { return shift_logits(choices, image.c); }

}  // namespace

constexpr Relation logit_shift = {
    .name = "logit_shift",
    .purpose = "all logits lower by 20, 120 or 5,000, or higher by 80",
    .finds =
        "anything that stands for -inf and is not: zero scratch, a finite minimum, a maximum "
        "that starts at 0",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .change = change};

}  // namespace families
}  // namespace kv
