#include "reference/bounds.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Fused steps that add a product which is not zero: at most one for each visible key, and at most
// those that the hull of the visible keys touches when steps do not straddle tiles or splits.
uint64_t value_steps(const Profile& p, const RowExtent& e) {
  if (p.values.fused_multiply_add) return e.keys;
  return std::min(e.keys, e.span / p.values.products + 1 + p.splits);
}

// Tiles with a visible key, less one, and a sink: the most rescalings that a weight can undergo.
uint64_t rescalings(const Profile& p, const RowExtent& e) {
  return std::min(e.keys, e.span / p.tile_slots + 2) - 1 + (e.sink ? 1 : 0);
}

double probability_normal(const Profile& p) {
  return smallest_normal(p.probability_dtype) * power_of_two(-p.probability_offset);
}

// Scaled codes may be operands as they are or of the query's type: the coarser counts.
void add_operands(const Profile& p, const RowExtent& e, Coefficients& c) {
  const double query = smallest_normal(e.query_dtype);
  const double cache = std::max(query, smallest_normal(e.kv_dtype));
  if (!p.scores.fused_multiply_add) {
    c.query_normal = query;
    c.key_normal = cache;
  }
  if (p.values.fused_multiply_add) return;
  c.value_normal = cache;
  c.probability_normal = probability_normal(p);
}

double row_sum_error(const Profile& p, const RowExtent& e, double rescaling) {
  const double plain = gamma32(static_cast<double>(e.keys + rescalings(p, e) + 4));
  // It multiplies P by 1, subnormal P too, and L is at least 1.
  const double mma = p.values.fused_multiply_add ? plain
                                                 : accumulation_error(p.values, value_steps(p, e)) *
                                                           (1 + probability_normal(p)) +
                                                       rescaling;
  const double error = p.row_sum == RowSum::kOfFp32      ? plain
                       : p.row_sum == RowSum::kOfRounded ? mma
                                                         : std::max(plain, mma);
  return error < 0.5 ? error / (1 - error) : kInfinity;
}

void add_split(const Profile& p, const RowExtent& e, Coefficients& c) {
  const double splits = p.splits;
  c.split_scores = 4 * kUnit32;
  c.split_lse = 3 * kUnit32;
  c.split_constant = 8 * kUnit32 + p.log2_error * (1 + std::bit_width(e.keys + 1)) +
                     (splits + 1) * p.exp2_error + 2 * p.division_error;
  c.accumulation += gamma32(2 * splits + 6);
}

}  // namespace

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

int exponent_of(double x) { return static_cast<int>(std::bit_cast<uint64_t>(x) >> 52) - 1023; }

double smallest_normal(DType type) {
  return type == DType::kI8 ? 0 : dtype_min_subnormal(type) / (2 * dtype_unit_roundoff(type));
}

double expm1_bound(double x) { return x <= 1 ? x * (1 + x) : kInfinity; }

double gamma32(double n) {
  const double x = n * kUnit32;
  return x < 0.5 ? x / (1 - x) : kInfinity;
}

double step_error(const Accumulation& a) {
  if (a.fused_multiply_add) return kUnit32;
  const double grid = (a.products + 1) * power_of_two(-a.fraction_bits);
  return grid + power_of_two(-a.result_bits) * (1 + grid);
}

double accumulation_error(const Accumulation& a, uint64_t steps) {
  return expm1_bound(static_cast<double>(steps) * step_error(a));
}

Coefficients coefficients(const Profile& p, const RowExtent& e) {
  Coefficients c;
  const uint64_t score_steps =
      p.scores.fused_multiply_add ? e.dim_k : (e.dim_k + p.scores.products - 1) / p.scores.products;
  // Scaled K and V may be dequantised to the 16-bit operand type of an mma. Where the operands are
  // 8-bit codes, their scales are applied to fp32 scores and to P (docs/numerics.md §2.7).
  const bool codes = e.scaled_kv && dtype_bytes(e.query_dtype) == 1;
  const bool to_operand = e.scaled_kv && !p.values.fused_multiply_add && !codes;
  // The product of code and scale is rounded to fp32 first.
  const double twice = dtype_unit_roundoff(e.query_dtype) * (1 + kUnit32) + kUnit32;
  const double dequantised = to_operand ? twice : e.scaled_kv ? 2 * kUnit32 : 0;
  const double rescaled = static_cast<double>(rescalings(p, e));
  const double rescaling = expm1_bound(kUnit32 * rescaled);
  c.dequantised = dequantised;
  c.dequantised_quantum = to_operand ? 0.5 * dtype_min_subnormal(e.query_dtype) : 0;
  if (to_operand) c.operand_max = dtype_max(e.query_dtype);
  add_operands(p, e, c);
  c.scores = accumulation_error(p.scores, score_steps) * (1 + dequantised) + dequantised;
  c.tanh = e.softcap ? p.tanh_error : 0;
  c.bias = 3 * kUnit32;
  c.argument = p.argument_roundings * kUnit32;
  c.distance = p.distance_roundings * kUnit32;
  c.exponential = p.exp2_error * (1 + rescaled);
  c.row_sum = row_sum_error(p, e, rescaling);
  c.division = p.division_error;
  if (p.probability_rounded) {
    c.probability_relative = dtype_unit_roundoff(p.probability_dtype);
    c.probability_absolute =
        0.5 * dtype_min_subnormal(p.probability_dtype) * power_of_two(-p.probability_offset);
  }
  if (codes && p.probability_rounded) {
    c.scale_in_probability = true;
    c.folded_scale_max = dtype_max(p.probability_dtype) * power_of_two(-p.probability_offset - 1);
  }
  if (p.probability_normalised) {
    // Each P carries the error of its own division, then that of its rounding.
    c.probability_normalised = true;
    c.probability_relative =
        c.probability_relative * (1 + c.row_sum + c.division) + c.division * (1 + c.row_sum);
  }
  c.accumulation =
      (accumulation_error(p.values, value_steps(p, e)) * (1 + c.probability_relative) + rescaling) *
          (1 + dequantised) +
      dequantised;
  if (p.splits > 1) add_split(p, e, c);
  c.log2_error = p.log2_error;
  c.underflow = static_cast<double>(e.keys + 8) * 0x1p-125;
  return c;
}

}  // namespace kv::reference
