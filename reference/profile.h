// Purpose: what an error bound may assume about a kernel's arithmetic, as data.
// Contract: a Profile is the weakest arithmetic that the declaration allows: what is not declared
// is taken at its worst. Every constant has a documented source (docs/numerics.md §1), and the
// profile's name is printed with every verdict that rests on it.
// Example:
//   Profile p = resolve_profile({.shape = c.shape, .declared = facts, .arithmetic = "hopper"});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"

namespace kv::reference {

/// How products are summed (docs/numerics.md §1.2, Lemma 2). Either a fused step of `products`
/// exact products and the accumulator, aligned to the largest and truncated to `fraction_bits`,
/// result truncated to `result_bits`; or, with `fused_multiply_add`, fp32 fma rounded to nearest.
struct Accumulation {
  std::string_view name;
  uint32_t products = 1;
  int fraction_bits = 24, result_bits = 23;
  bool fused_multiply_add = true;
  bool operator==(const Accumulation&) const = default;
};

inline constexpr Accumulation kFmaChain{"fp32 fma", 1, 24, 23, true};
inline constexpr Accumulation kVolta16{"Volta mma", 4, 23, 23, false};
inline constexpr Accumulation kAmpere16{"Turing/Ampere/Ada mma", 8, 24, 23, false};
inline constexpr Accumulation kHopper16{"Hopper/Blackwell mma", 16, 25, 23, false};
inline constexpr Accumulation kHopper8{"Hopper/Ada fp8 mma", 32, 13, 13, false};
inline constexpr Accumulation kBlackwell8{"Blackwell fp8 mma", 32, 25, 23, false};

/// One row of the table of architectures: 16-bit and 8-bit mma.
struct Architecture {
  std::string_view name;
  Accumulation mma16, mma8;
};
/// "generic", "cpu", "volta", "ampere", "ada", "hopper", "blackwell".
const std::vector<Architecture>& architectures();

enum class RowSum : uint8_t { kUnknown, kOfFp32, kOfRounded };
enum class TileOrder : uint8_t { kAny, kAscending, kDescending };

struct Profile {
  std::string name;  // for people: what was assumed
  Accumulation scores = kVolta16, values = kVolta16;
  bool probability_rounded = true;  // to probability_dtype, to nearest, before P.V
  DType probability_dtype = DType::kF16;
  int probability_offset = 0;           // P is scaled by 2^offset before it is rounded
  bool probability_normalised = false;  // P may have been divided by the row sum before rounding
  RowSum row_sum = RowSum::kUnknown;
  uint32_t tile_slots = 1;  // keys for each online-softmax step, at least
  TileOrder order = TileOrder::kAny;
  uint32_t splits = 1;
  bool maximum_is_exact = false;  // P of a tile is relative to the running maximum, tile included
  // Relative errors of the approximate instructions (PTX ISA 9.1) and of softcap's tanh.
  double exp2_error = 5.01 * 0x1p-24;         // ex2.approx.f32: 2 ulp
  double division_error = 6 * 0x1p-24;        // rcp.approx 1 ulp, div.full 2 ulp, and the multiply
  double log2_error = 0x1p-22;                // lg2.approx
  double tanh_error = 0x1p-11 + 4 * 0x1p-24;  // tanh.approx.f32
  double argument_roundings = 1;              // c_a of Lemma 4
  double distance_roundings = 5;              // c_b of Lemma 4
};

/// Whether B1 may follow the accumulator from tile to tile.
bool order_is_known(const Profile& profile);
/// Whether P is declared as rounded, so that powers of two may be expected to stay themselves.
bool rounding_is_declared(const Profile& profile);
/// Whether B2 may round P as the kernel does (sinks and scaled K/V apart).
bool rounding_is_known(const Profile& profile);

/// kv_profile, in the terms of this room (0 and "unknown": undeclared).
struct Declaration {
  uint32_t tile_slots = 0;
  TileOrder order = TileOrder::kAny;
  enum class Accumulate : uint8_t { kUndeclared, kFma, kMma } accumulate = Accumulate::kUndeclared;
  bool probability_declared = false;
  DType probability_dtype = DType::kF32;
  bool row_sum_of_rounded = false;
  bool maximum_is_exact = false;
  uint32_t splits = 1;
};

struct ProfileRequest {
  Shape shape = {};
  Declaration declared = {};
  std::string arithmetic = {};  // an architecture's name; "" is "generic"
};
Profile resolve_profile(const ProfileRequest& request);

}  // namespace kv::reference
