// Signs of zeros in mma: a sum of products that are all -0, and -0, is -0 (IEEE 754 section 6.3).
#include <gtest/gtest.h>

#include "harness/simt/exec/semantics_test/bench.h"

namespace kv::simt::semantics {
namespace {

/// D of m16n8k16 in f32 with every element of A, B (two f16 in a word) and C the same.
std::vector<uint32_t> product(uint32_t a, uint32_t b, uint32_t c) {
  Bench bench(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 ab, .param .u64 c) {\n"
      ".reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .f32 %f<8>;\n"
      "ld.param.u32 %r1, [ab];\nld.param.u32 %r2, [ab+4];\nld.param.f32 %f1, [c];\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, "
      "{%r1, %r1, %r1, %r1}, {%r2, %r2}, {%f1, %f1, %f1, %f1};\n"
      "ld.param.u64 %rd1, [out];\nmov.u32 %r3, %tid.x;\nmul.wide.u32 %rd2, %r3, 16;\n"
      "add.s64 %rd1, %rd1, %rd2;\nst.global.v4.f32 [%rd1], {%f4, %f5, %f6, %f7};\nret;\n}\n",
      80);
  if (!bench.ready()) return {};
  const uint64_t out = bench.reserve(512);
  EXPECT_EQ(bench.launch({.grid = {1, 1, 1}, .block = {32, 1, 1}},
                         {out, a | uint64_t{b} << 32, uint64_t{c}}),
            Bench::Ran::kToItsEnd);
  return bench.download<uint32_t>(out, 128);
}

constexpr uint32_t kMinusZeros = 0x80008000, kOnes = 0x3c003c00, kMinusZero = 0x80000000;

TEST(MatrixZero, NegativeProductsAndANegativeAccumulatorStayNegative) {
  EXPECT_EQ(product(kMinusZeros, kOnes, kMinusZero), std::vector<uint32_t>(128, kMinusZero));
  EXPECT_EQ(product(kOnes, kMinusZeros, kMinusZero), std::vector<uint32_t>(128, kMinusZero));
}
TEST(MatrixZero, OneTermOfTheOtherSignMakesZeroPositive) {
  EXPECT_EQ(product(kMinusZeros, kOnes, 0), std::vector<uint32_t>(128, 0));
  EXPECT_EQ(product(kMinusZeros, kMinusZeros, kMinusZero), std::vector<uint32_t>(128, 0));
}

}  // namespace
}  // namespace kv::simt::semantics
