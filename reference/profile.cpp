#include "reference/profile.h"

#include "harness/core/check.h"

namespace kv::reference {
namespace {

const Architecture& architecture(std::string_view name) {
  for (const Architecture& a : architectures()) {
    if (a.name == name) return a;
  }
  KV_CHECK(false, "unknown architecture: " + std::string(name));
}

bool is_fp8(DType type) { return type == DType::kE4m3 || type == DType::kE5m2; }

// The narrowest type that a kernel may have rounded P to when it does not say.
DType worst_probability_dtype(const Shape& shape) {
  return dtype_unit_roundoff(shape.query_dtype) > dtype_unit_roundoff(shape.kv_dtype)
             ? shape.query_dtype
             : shape.kv_dtype;
}

// An fp8 mma has two fp8 operands: where one of them is wider, the other is converted to it. int8
// codes are summed exactly or converted.
Accumulation accumulation(const ProfileRequest& r, const Architecture& a, DType other) {
  using Accumulate = Declaration::Accumulate;
  if (r.declared.accumulate == Accumulate::kFma) return kFmaChain;
  const bool all_fp32 = r.shape.query_dtype == DType::kF32 && r.shape.kv_dtype == DType::kF32;
  if (all_fp32 && r.declared.accumulate == Accumulate::kUndeclared) return kFmaChain;
  return is_fp8(r.shape.kv_dtype) && is_fp8(other) ? a.mma8 : a.mma16;
}

std::string describe(const Profile& p, std::string_view architecture_name) {
  std::string text = std::string(p.values.name);
  if (!p.values.fused_multiply_add) text += " (" + std::string(architecture_name) + ")";
  text += p.probability_rounded ? ", P rounded to " + std::string(dtype_name(p.probability_dtype))
                                : ", P in fp32";
  text += ", tiles of at least " + std::to_string(p.tile_slots);
  if (p.row_sum == RowSum::kOfRounded) text += ", row sum of rounded P";
  if (p.row_sum == RowSum::kUnknown) text += ", row sum of either P";
  if (p.splits > 1) text += ", " + std::to_string(p.splits) + " splits";
  return text;
}

}  // namespace

const std::vector<Architecture>& architectures() {
  // "generic" is the weakest of all generations, term by term: 3 units of 2^-24 for each product.
  // The CPU device sums exactly and rounds once, or follows Ampere or Hopper step by step: Ampere
  // covers all three.
  static const std::vector<Architecture> table = {
      {"generic", kVolta16, kHopper8},       {"cpu", kAmpere16, kAmpere16},
      {"volta", kVolta16, kVolta16},         {"ampere", kAmpere16, kAmpere16},
      {"ada", kAmpere16, kHopper8},          {"hopper", kHopper16, kHopper8},
      {"blackwell", kHopper16, kBlackwell8},
  };
  return table;
}

Profile resolve_profile(const ProfileRequest& r) {
  const std::string name = r.arithmetic.empty() ? "generic" : r.arithmetic;
  Profile p;
  p.probability_dtype = r.declared.probability_declared ? r.declared.probability_dtype
                                                        : worst_probability_dtype(r.shape);
  p.probability_rounded = p.probability_dtype != DType::kF32;
  p.scores = accumulation(r, architecture(name), r.shape.query_dtype);
  p.values = accumulation(r, architecture(name), p.probability_dtype);
  p.order = r.declared.order;
  p.splits = r.declared.splits == 0 ? 1 : r.declared.splits;
  p.maximum_is_exact = r.declared.maximum_is_exact;
  if (r.declared.tile_slots == 0) {
    // A kernel that declares no tile may be no online softmax at all, but scores, softmax and P.V
    // one after the other, with a P that is normalised before it is rounded.
    p.tile_slots = 1;
    p.probability_normalised = true;
    p.row_sum = p.probability_rounded ? RowSum::kUnknown : RowSum::kOfFp32;
  } else {
    p.tile_slots = r.declared.tile_slots;
    p.row_sum = r.declared.row_sum_of_rounded ? RowSum::kOfRounded : RowSum::kOfFp32;
  }
  p.name = describe(p, name);
  return p;
}

bool order_is_known(const Profile& p) {
  return p.order != TileOrder::kAny && p.splits == 1 && !p.probability_normalised;
}

bool rounding_is_declared(const Profile& p) {
  return p.probability_rounded && !p.probability_normalised && p.splits == 1 &&
         p.tile_slots % 16 == 0 && p.row_sum != RowSum::kUnknown;
}

bool rounding_is_known(const Profile& p) {
  return order_is_known(p) && p.probability_rounded && p.maximum_is_exact &&
         p.row_sum != RowSum::kUnknown;
}

}  // namespace kv::reference
