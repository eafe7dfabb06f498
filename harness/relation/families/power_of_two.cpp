// Family power_of_two: K and its dequantisation scales times 2^n, the scale of scores divided by
// it. Holds: the same bits, where KV_PROMISE_SCALE: every product and sum of scores has the same
// mantissa.
// Of: designed data, where no element overflows or falls below the normal numbers of its type (the
// largest exponent leaves room; 8-bit types have none unless their scale follows; a rotated element
// of fp16 may be subnormal), and no rounding is drawn by the bits of operands.
// Kills: none alone; kept because an absolute threshold hides in the error bound of every case.
#include <cmath>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

constexpr uint32_t kExponentMax = 3;

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const Shape& shape = c.shape;
  const bool has_room = dtype_bytes(shape.kv_dtype) > 1 || shape.kv_scale != KvScale::kNone;
  const bool is_subnormal =
      shape.rope.pairing != RopePairing::kNone && shape.kv_dtype == DType::kF16;
  const bool applies = has_room && !is_subnormal && is_designed(c) &&
                       c.data.design != Design::kSubsetSelect && c.data.view.key_exponent == 0 &&
                       c.data.view.logit_shift == 0 && std::abs(c.shape.scale) > 1e-6f &&
                       c.exec.rounding != Rounding::kRandom;
  if (!applies) return false;
  const auto exponent = static_cast<uint32_t>(choices.between(1, kExponentMax));
  c.data.view.key_exponent = exponent;
  c.shape.scale = std::ldexp(c.shape.scale, -static_cast<int>(exponent));
  return true;
}

}  // namespace

constexpr Relation power_of_two = {
    .name = "power_of_two",
    .purpose = "K and its dequantisation scales times 2^n, scale divided by it",
    .finds = "an absolute threshold or epsilon on scores",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_SCALE,
    .change = change};

}  // namespace kv::families
