// Purpose: every conversion that has no row in isa/convert.cpp, one lane at a time.
// Contract: exact; PTX ISA 9.0 section 9.7.9.22. The Ins says what: mode is the destination's type,
// extra the source's (ptx::Type), flags ConvertFlags.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/simt/exec/warp.h"

namespace kv::simt {

namespace convert_flags {
inline constexpr uint16_t kRoundMask = 7;  // 0 nearest, 1 zero, 2 down, 3 up, 4 nearest, ties away
inline constexpr uint16_t kIntegral = 8;   // .rni and the like: to an integral value
inline constexpr uint16_t kFtz = 16, kSat = 32, kRelu = 64, kFinite = 128;
}  // namespace convert_flags

const Ins* convert_any(Warp& w, const Ins* i);
/// True for pairs of types that convert_any knows.
bool convertible(ptx::Type to, ptx::Type from);

}  // namespace kv::simt
