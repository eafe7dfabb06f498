// Family positions: every position id moved by a constant.
// Holds: each side within its own bound: masks and ALiBi follow differences, and rotations of Q and
// K differ by the same angle as before. Bits may differ where K is stored rotated.
// Of: every case; where positions rotate, by small constants only, since far ones leave a kernel
// any angle and would say nothing.
// Kills: none alone; kept because it alone moves absolute position ids and leaves relative ones.
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  const bool rotates = image.c.shape.rope.pairing != RopePairing::kNone;
  const int64_t by = rotates ? choices.pick<int64_t>({1, 1000, -77})
                             : choices.pick<int64_t>({1, 1000, int64_t{1} << 31});
  for (Op& op : image.c.ops)
    if (auto* admit = std::get_if<op::Admit>(&op)) admit->position_offset += by;
  return true;
}

}  // namespace

constexpr Relation positions = {
    .name = "positions",
    .purpose = "every position id moved by a constant",
    .finds = "position ids cut to 32 bits; a rotation by absolute rather than relative position",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .change = change};

}  // namespace kv::families
