// Family heads_rotated: KV heads and their query heads in another order.
// Holds: the same bits, head for head, where KV_PROMISE_HEAD.
// Of: designed data, two KV heads or more, and nothing else that belongs to a head by its number:
// ALiBi slopes, sinks, a scale for each head.
// Kills: 162_odd_heads_other_arithmetic
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool heads_differ(const Shape& shape) {
  return shape.alibi || shape.sinks || shape.kv_scale == KvScale::kHead;
}

bool change(ChoiceSource& choices, Image& image) {
  const Shape& shape = image.c.shape;
  if (!is_designed(image.c) || shape.kv_heads < 2 || heads_differ(shape)) return false;
  image.head_rotation = static_cast<uint32_t>(choices.between(1, shape.kv_heads - 1));
  uint32_t& rotation = image.c.data.view.head_rotation;
  rotation = (rotation + image.head_rotation) % shape.kv_heads;
  return true;
}

}  // namespace

constexpr Relation heads_rotated = {
    .name = "heads_rotated",
    .purpose = "KV heads and their query heads in another order",
    .finds = "heads that share what they must not, within the error bound",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_HEAD,
    .change = change};

}  // namespace kv::families
