// Which numbers go in, and what that must do to the numbers that come out.
#include <cmath>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families.h"

namespace kv {
namespace {

/// Overrides name places; they do not move with what a view moves. Nor does V move alone that lies
/// in K.
bool is_designed(const Case& c) {
  return c.data.overrides.empty() && c.data.tensors_file.empty() && !c.shape.value_in_key;
}

bool heads_differ(const Shape& shape) {
  return shape.alibi || shape.sinks || shape.kv_scale == KvScale::kHead;
}

bool heads_rotated(ChoiceSource& choices, Image& image) {
  const Shape& shape = image.c.shape;
  if (!is_designed(image.c) || shape.kv_heads < 2 || heads_differ(shape)) return false;
  image.head_rotation = static_cast<uint32_t>(choices.between(1, shape.kv_heads - 1));
  uint32_t& rotation = image.c.data.view.head_rotation;
  rotation = (rotation + image.head_rotation) % shape.kv_heads;
  return true;
}

bool heads_repeated(ChoiceSource&, Image& image) {
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

bool channels_rotated(ChoiceSource& choices, Image& image) {
  const uint32_t dims = image.c.shape.head_dim_v;
  if (!is_designed(image.c) || dims < 2 || image.c.shape.kv_scale != KvScale::kNone) return false;
  image.value_rotation = static_cast<uint32_t>(choices.between(1, dims - 1));
  uint32_t& rotation = image.c.data.view.value_rotation;
  rotation = (rotation + image.value_rotation) % dims;
  return true;
}

bool keys_rescaled(ChoiceSource& choices, Image& image) {
  constexpr uint32_t kExponentMax = 3;
  Case& c = image.c;
  // The largest designed exponent must leave room, and 8-bit types have none, unless their scale
  // follows. A rotated element of fp16 may be subnormal, and then rounds otherwise.
  const Shape& shape = c.shape;
  const bool has_room = dtype_bytes(shape.kv_dtype) > 1 || shape.kv_scale != KvScale::kNone;
  const bool is_subnormal =
      shape.rope.pairing != RopePairing::kNone && shape.kv_dtype == DType::kF16;
  const bool applies = has_room && !is_subnormal && is_designed(c) &&
                       c.data.design != Design::kSubsetSelect && c.data.view.key_exponent == 0 &&
                       c.data.view.logit_shift == 0 && std::abs(c.shape.scale) > 1e-6f &&
                       c.exec.rounding != Rounding::kRandom;  // it rounds by operand bits
  if (!applies) return false;
  const auto exponent = static_cast<uint32_t>(choices.between(1, kExponentMax));
  c.data.view.key_exponent = exponent;
  c.shape.scale = std::ldexp(c.shape.scale, -static_cast<int>(exponent));
  return true;
}

bool logits_shifted(ChoiceSource& choices, Image& image) { return shift_logits(choices, image.c); }

bool as_design(Image& image, Design design) {
  if (!is_designed(image.c) || image.c.data.design == design) return false;
  image.c.data.design = design;
  return true;
}
bool census(ChoiceSource&, Image& image) { return as_design(image, Design::kCensus); }
bool constant_value(ChoiceSource&, Image& image) {
  return as_design(image, Design::kConstantValue);
}

bool positions_moved(ChoiceSource& choices, Image& image) {
  // Where positions turn K and Q, far ones leave a kernel any angle, and say nothing.
  const bool rotates = image.c.shape.rope.pairing != RopePairing::kNone;
  const int64_t by = rotates ? choices.pick<int64_t>({1, 1000, -77})
                             : choices.pick<int64_t>({1, 1000, int64_t{1} << 31});
  for (Op& op : image.c.ops)
    if (auto* admit = std::get_if<op::Admit>(&op)) admit->position_offset += by;
  return true;
}

/// The same keys hidden, told in another way.
bool other_encoding(ChoiceSource& choices, Image& image) {
  Mask& mask = image.c.mask;
  if (mask.encoding == MaskEncoding::kNone) return false;
  const Mask before = mask;
  mask.encoding = choices.pick({MaskEncoding::kAdditive, MaskEncoding::kBoolKeep,
                                MaskEncoding::kBoolBlock, MaskEncoding::kPackedBits});
  mask.additive_dtype = choices.pick({DType::kF32, DType::kF16, DType::kBf16});
  mask.additive_finite_minimum = choices.one_in(2);
  return !(mask == before);
}

/// One parameter differs; results that stayed where they were would be wrong now.
bool one_parameter(ChoiceSource& choices, Image& image) {
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

constexpr Relation kRelations[] = {
    {.name = "heads_rotated",
     .purpose = "KV heads and their query heads in another order",
     .finds = "heads that share what they must not, within the error bound",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_HEAD,
     .change = heads_rotated},
    {.name = "heads_repeated",
     .purpose = "grouped-query attention as multi-head attention with K and V repeated",
     .finds = "arithmetic that depends on the size of the head group",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_HEAD | KV_PROMISE_PAGE,
     .change = heads_repeated},
    {.name = "value_channels",
     .purpose = "channels of V in another order",
     .finds = "channels that are summed in different ways",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_CHANNEL,
     .change = channels_rotated},
    {.name = "power_of_two",
     .purpose = "K and its dequantisation scales times 2^n, scale divided by it",
     .finds = "an absolute threshold or epsilon on scores",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_SCALE,
     .change = keys_rescaled},
    {.name = "logit_shift",
     .purpose = "all logits lower by 20, 120 or 5,000, or higher by 80",
     .finds = "anything that stands for -inf and is not: zero scratch, a finite minimum, a maximum "
              "that starts at 0",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = logits_shifted},
    {.name = "census",
     .purpose = "q = 0 and V codes the position: the output is read back as the visible set",
     .finds = "a fault of the reference's own masks: this check uses none of it",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = census},
    {.name = "constant_value",
     .purpose = "V is 1, so O is 1",
     .finds = "weights that do not sum to one, whatever else the design hides",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = constant_value},
    {.name = "positions",
     .purpose = "every position id moved by a constant",
     .finds = "position ids cut to 32 bits; a rotation by absolute rather than relative position",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = positions_moved},
    {.name = "encoding",
     .purpose = "the same mask in another encoding",
     .finds = "a code path of its own for one encoding, within the error bound",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_MASK,
     .same_cache = true,
     .change = other_encoding},
    {.name = "liveness",
     .purpose = "one parameter changed: scale, causality or window",
     .finds = "a parameter that is ignored or remembered from the call before",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .same_cache = true,
     .change = one_parameter},
};

}  // namespace

bool shift_logits(ChoiceSource& choices, Case& c) {
  // Turned, the dimension that moves the logits moves each of them by another amount.
  const bool turns = c.shape.rope.pairing != RopePairing::kNone;
  const bool applies = !turns && is_designed(c) && c.data.view.logit_shift == 0 &&
                       c.data.view.key_exponent == 0 && dtype_bytes(c.shape.kv_dtype) > 1 &&
                       std::abs(c.shape.scale) > 0.01f && c.shape.softcap == 0;
  if (applies) c.data.view.logit_shift = choices.pick({-20.0, -120.0, -5000.0, 80.0});
  return applies;
}

std::span<const Relation> data_relations() { return kRelations; }

}  // namespace kv
