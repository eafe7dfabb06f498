// Purpose: one row of a tensor as exact fixed-point numbers, and its rounding to any dtype.
// Contract: element i stands for fixed[i] * 2^(exponent - 21) with |fixed[i]| <= 2^24 and
// 0 <= exponent <= 12: integers make the designs portable, and one rounding to nearest even makes
// the stored value. No result depends on the instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/case/limits.h"
#include "harness/core/formats.h"

namespace kv {

struct FixedRow {
  static constexpr int kFractionBits = 21;
  static constexpr int32_t kOne = 1 << kFractionBits;
  /// Rows are filled in groups of 32 elements, so the array has no ragged end.
  static constexpr uint32_t kGroup = 32;

  uint32_t size = 0;
  int exponent = 0;
  std::array<int32_t, limits::kHeadDimMax> fixed;

  std::span<int32_t> elements() { return {fixed.data(), size}; }
};
static_assert(limits::kHeadDimMax % FixedRow::kGroup == 0);

/// Rounds every element to `type` and writes it little endian; `out` is size * dtype_bytes long.
void encode_row(const FixedRow& row, DType type, std::span<std::byte> out);
/// The same for fp16 on a machine that does not convert it, or with KVERIFY_CPU=portable.
void encode_f16_portably(const FixedRow& row, std::span<std::byte> out);

}  // namespace kv
