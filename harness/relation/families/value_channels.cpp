// Family value_channels: channels of V in another order.
// Holds: the same bits, channel for channel, where KV_PROMISE_CHANNEL; the LSE as it was.
// Of: designed data without a scale, which a quantised row's channels would share.
// Kills: 161_channels_rounded_twice
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  const uint32_t dims = image.c.shape.head_dim_v;
  if (!is_designed(image.c) || dims < 2 || image.c.shape.kv_scale != KvScale::kNone) return false;
  image.value_rotation = static_cast<uint32_t>(choices.between(1, dims - 1));
  uint32_t& rotation = image.c.data.view.value_rotation;
  rotation = (rotation + image.value_rotation) % dims;
  return true;
}

}  // namespace

constexpr Relation value_channels = {.name = "value_channels",
                                     .purpose = "channels of V in another order",
                                     .finds = "channels that are summed in different ways",
                                     .agreement = Agreement::kBits,
                                     .promises = KV_PROMISE_CHANNEL,
                                     .change = change};

}  // namespace kv::families
