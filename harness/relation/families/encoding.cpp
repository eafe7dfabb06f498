// Family encoding: the same keys hidden, told in another encoding.
// Holds: the same bits of O and LSE, where KV_PROMISE_MASK; and of the cache, which no mask may
// change, of a deterministic plugin.
// Of: cases with a mask tensor.
// Kills: 230_additive_in_two_roundings
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  Mask& mask = image.c.mask;
  if (mask.encoding == MaskEncoding::kNone) return false;
  const Mask before = mask;
  mask.encoding = choices.pick({MaskEncoding::kAdditive, MaskEncoding::kBoolKeep,
                                MaskEncoding::kBoolBlock, MaskEncoding::kPackedBits});
  mask.additive_dtype = choices.pick({DType::kF32, DType::kF16, DType::kBf16});
  mask.additive_finite_minimum = choices.one_in(2);
  return !(mask == before);
}

}  // namespace

constexpr Relation encoding = {
    .name = "encoding",
    .purpose = "the same mask in another encoding",
    .finds = "a code path of its own for one encoding, within the error bound",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_MASK,
    .same_cache = true,
    .change = change};

}  // namespace kv::families
