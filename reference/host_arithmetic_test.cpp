// Each defect is planted, by MXCSR or by the compiler's flags, and named.
#include "reference/host_arithmetic.h"

#include <gtest/gtest.h>

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kv::reference {

std::string_view defect_under_fast_math();    // host_arithmetic_fast_math.cpp
std::string_view defect_under_contraction();  // host_arithmetic_contracted.cpp

namespace {

TEST(HostArithmetic, ThisProcessIsSound) { EXPECT_EQ(host_arithmetic_defect(), ""); }

TEST(HostArithmetic, FastMathIsDetected) {
  EXPECT_NE(defect_under_fast_math().find("fast-math"), std::string_view::npos);
}

TEST(HostArithmetic, AnotherRoundingModeIsDetected) {
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::string_view defect = host_arithmetic_defect();
    std::fesetround(FE_TONEAREST);
    EXPECT_NE(defect.find("nearest"), std::string_view::npos) << mode;
  }
}

#if defined(__x86_64__)
TEST(HostArithmetic, FlushingIsDetected) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8000);
  const std::string_view flushed = host_arithmetic_defect();
  _mm_setcsr(before | 0x0040);
  const std::string_view read_as_zero = host_arithmetic_defect();
  _mm_setcsr(before);
  EXPECT_NE(flushed.find("FTZ"), std::string_view::npos) << flushed;
  EXPECT_NE(read_as_zero, "");
  EXPECT_EQ(host_arithmetic_defect(), "");
}

TEST(HostArithmetic, ContractionIsDetected) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no FMA";
  EXPECT_NE(defect_under_contraction().find("contracted"), std::string_view::npos);
}
#endif

}  // namespace
}  // namespace kv::reference
