// Purpose: what every floating-point definition shares: types by name, flushing, saturation.
// Contract: pure functions; bits in, an Outcome out.
// Example: finish(kF32, add(x, y, mode), {.ftz = true})
#pragma once

#include <string_view>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/real.h"

namespace kv::simt::semantics {

/// "f16", "bf16", "f32", "f64"; packed types give their element.
const Format& format_of(std::string_view type);
Round round_of(std::string_view modifier);  // "rn", "rz", "rm", "rp", "rni", ...

struct Finish {
  Round direction = Round::kNearest;
  bool ftz = false, sat = false, relu = false;
};

/// The rounded, flushed and clamped result. NaN: canonical, any NaN for f64 (ISA section 9.7.3).
/// Left open: whether a result that rounds up to the least normal number is flushed; the sign of a
/// zero that was clamped.
Outcome finish(const Format& format, const Real& exact, Finish how);
/// A NaN result whose payload is not specified.
Outcome any_nan(const Format& format);
/// Accepts `bits`, or any NaN if they are one.
Outcome exactly(const Format& format, uint64_t bits);
/// The two halves of a packed result in one 32-bit outcome.
Outcome pack(const Outcome& low, const Outcome& high);

/// -1, 0, 1, or 2 when unordered. -0 equals +0.
int compare(const Format& format, uint64_t a, uint64_t b);

}  // namespace kv::simt::semantics
