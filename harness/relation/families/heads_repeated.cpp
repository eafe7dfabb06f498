// Family heads_repeated: grouped-query attention as multi-head attention, K and V repeated for each
// query head.
// Holds: the same bits, where KV_PROMISE_HEAD and KV_PROMISE_PAGE: how many heads share a tile is
// not arithmetic.
// Of: designed data in groups of two and more, whose heads no earlier view has moved and no scale
// of their own tells apart.
// Kills: 166_group_of_one_by_itself
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource&, Image& image) {
  Shape& shape = image.c.shape;
  const uint32_t group = shape.query_heads / shape.kv_heads;
  DataView& view = image.c.data.view;
  const bool applies = is_designed(image.c) && group > 1 && view.head_rotation == 0 &&
                       view.kv_head_repeat == 1 && shape.kv_scale != KvScale::kHead;
  if (!applies) return false;
  shape.kv_heads = shape.query_heads;
  view.kv_head_repeat = group;
  return true;
}

}  // namespace

constexpr Relation heads_repeated = {
    .name = "heads_repeated",
    .purpose = "grouped-query attention as multi-head attention with K and V repeated",
    .finds = "arithmetic that depends on the size of the head group",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_HEAD | KV_PROMISE_PAGE,
    .change = change};

}  // namespace kv::families
