// Purpose: the checks of host_arithmetic.h, for one translation unit with the flags in question.
// Contract: included by host_arithmetic.cpp, and by tests that compile it with the wrong flags.
// Operands pass through volatile variables: nothing is computed by the compiler.
#pragma once

#include <string_view>

namespace kv::reference {

static double at_run_time(double x) {
  volatile double v = x;
  return v;
}

static std::string_view find_arithmetic_defect() {
#ifdef __FAST_MATH__
  return "the reference was compiled with fast-math";
#endif
  const double tiny = at_run_time(0x1p-1060), half = at_run_time(0.5);
  if (!(tiny * half > 0)) return "subnormal results are flushed to zero (MXCSR FTZ)";
  const double big = at_run_time(0x1p1000);
  if (!(tiny * big > 0)) return "subnormal operands are read as zero (MXCSR DAZ)";
  const double one = at_run_time(1), quarter_ulp = at_run_time(0x1p-54);
  const bool nearest =
      one + quarter_ulp == 1 && one - quarter_ulp * half == 1 && -one - quarter_ulp == -1;
  if (!nearest) return "doubles are not rounded to nearest";
  const double a = at_run_time(1 + 0x1p-30), b = at_run_time(1 - 0x1p-30);
  if (a * b - one != 0) return "products and sums are contracted to fused multiply-adds";
  if ((one + quarter_ulp) - one != 0) return "sums are kept in a wider type, or reassociated";
  const double nan = at_run_time(0) / at_run_time(0);
  if (nan == nan) return "NaN compares equal to itself (-ffinite-math-only)";
  return "";
}

}  // namespace kv::reference
