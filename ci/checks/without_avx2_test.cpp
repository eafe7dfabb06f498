// Purpose: ci/without_avx2 really hides the instructions that it says it hides, from libc too.
#include <gtest/gtest.h>
#include <sys/platform/x86.h>

#include <cstdlib>
#include <string>

namespace kv {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST(WithoutAvx2, HidesTheInstructionsUnderTheWrapperOnly) {
  const bool wrapped = std::string(environment("KVERIFY_CPU")) == "portable";
  if (!CPU_FEATURE_PRESENT(AVX2)) GTEST_SKIP() << "this processor has no AVX2 to hide";
  EXPECT_EQ(static_cast<bool>(CPU_FEATURE_ACTIVE(AVX2)), !wrapped);
  EXPECT_EQ(static_cast<bool>(CPU_FEATURE_ACTIVE(FMA)), !wrapped);
  if (wrapped) {
    EXPECT_FALSE(CPU_FEATURE_ACTIVE(AVX512F));
  }
}

}  // namespace
}  // namespace kv
