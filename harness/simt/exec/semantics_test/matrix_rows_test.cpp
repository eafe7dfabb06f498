// Equal rows of an mma, and the same A as in the mma before: both are multiplied once only, which
// must show in no bit. The definition is the device's own: products and sums in double, k
// ascending, rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "harness/core/philox.h"
#include "harness/simt/exec/semantics_test/bench.h"

namespace kv::simt::semantics {
namespace {

constexpr int kRows = 16, kDepth = 16, kColumns = 8;

struct Matrices {
  uint16_t a[kRows][kDepth], b[kDepth][kColumns];
  float c[kRows][kColumns];
};

/// Normal halves of both signs.
double half_value(uint16_t h) {
  const double size = std::ldexp(0x400 + (h & 0x3ff), (h >> 10 & 31) - 25);
  return h >> 15 ? -size : size;
}

Matrices random_matrices(uint64_t seed) {
  const Philox philox{seed};
  Matrices m;
  uint64_t n = 0;
  const auto half = [&] {
    const auto bits = static_cast<uint16_t>(philox.word(0, n++));
    return static_cast<uint16_t>((bits & 0x83ff) | (8 + bits % 15) << 10);
  };
  for (auto& row : m.a)
    for (uint16_t& x : row) x = half();
  for (auto& row : m.b)
    for (uint16_t& x : row) x = half();
  for (auto& row : m.c)
    for (float& x : row) x = static_cast<float>(half_value(half()) * half_value(half()));
  return m;
}

/// Word `j` of lane 4 g + t, from row g (+ 8) and columns 2 t (+ 8) on: PTX ISA 9.0, 9.7.14.5.8.
std::vector<uint32_t> lane_words(const Matrices& m) {
  std::vector<uint32_t> words;
  const auto pair = [](uint16_t low, uint16_t high) { return low | uint32_t{high} << 16; };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int j = 0; j < 4; ++j) {
      const uint16_t* row = m.a[g + 8 * (j % 2)] + 8 * (j / 2) + 2 * t;
      words.push_back(pair(row[0], row[1]));
    }
    for (int j = 0; j < 2; ++j)
      words.push_back(pair(m.b[8 * j + 2 * t][g], m.b[8 * j + 2 * t + 1][g]));
    words.insert(words.end(), 2, 0);
    for (int j = 0; j < 4; ++j)
      words.push_back(std::bit_cast<uint32_t>(m.c[g + 8 * (j / 2)][2 * t + j % 2]));
  }
  return words;
}

std::vector<uint32_t> expected(const Matrices& m) {
  std::vector<uint32_t> d;
  for (int lane = 0; lane < 32; ++lane) {
    for (int j = 0; j < 4; ++j) {
      const int row = lane / 4 + 8 * (j / 2), column = lane % 4 * 2 + j % 2;
      double sum = m.c[row][column];
      for (int k = 0; k < kDepth; ++k) sum += half_value(m.a[row][k]) * half_value(m.b[k][column]);
      d.push_back(std::bit_cast<uint32_t>(static_cast<float>(sum)));
    }
  }
  return d;
}

/// C is in f1 .. f4; `d`: where D goes.
std::string kernel_of(const std::string& d) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<12>;\n"
         "ld.param.u64 %rd1, [in];\nmov.u32 %r7, %tid.x;\nmul.wide.u32 %rd2, %r7, 48;\n"
         "add.s64 %rd1, %rd1, %rd2;\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
         "ld.global.v2.u32 {%r5, %r6}, [%rd1+16];\n"
         "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+32];\n"
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {" +
         d +
         "}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};\n"
         "ld.param.u64 %rd3, [out];\nmul.wide.u32 %rd4, %r7, 16;\nadd.s64 %rd3, %rd3, %rd4;\n"
         "st.global.v4.f32 [%rd3], {" +
         d + "};\nret;\n}\n";
}

void check_on(Bench& bench, const Matrices& m) {
  ASSERT_TRUE(bench.ready());
  const uint64_t in = bench.upload(lane_words(m)), out = bench.reserve(512);
  ASSERT_EQ(bench.launch({.grid = {1, 1, 1}, .block = {32, 1, 1}}, {out, in}),
            Bench::Ran::kToItsEnd);
  EXPECT_EQ(bench.download<uint32_t>(out, 128), expected(m));
}

class MatrixRows : public testing::Test {
 protected:
  void check(const Matrices& m) { check_on(bench_, m); }
  void copy_row(Matrices& m, int to, int from, bool with_c) {
    std::copy(std::begin(m.a[from]), std::end(m.a[from]), m.a[to]);
    if (with_c) std::copy(std::begin(m.c[from]), std::end(m.c[from]), m.c[to]);
  }
  Bench bench_{kernel_of("%f5, %f6, %f7, %f8"), 80};
};

TEST_F(MatrixRows, EveryNumberOfEqualRowsInEitherHalf) {
  ASSERT_TRUE(bench_.ready());
  for (int half = 0; half < 2; ++half) {
    for (int first = 0; first < 8; ++first) {
      Matrices m = random_matrices(uint64_t(8 * half + first));
      for (int row = first + 1; row < 8; ++row) copy_row(m, 8 * half + row, 8 * half + first, true);
      check(m);
    }
  }
}

TEST_F(MatrixRows, EqualRowsOfAWithAnotherC) {
  ASSERT_TRUE(bench_.ready());
  for (int other = 0; other < 16; ++other) {
    Matrices m = random_matrices(100);
    for (int row = 1; row < 16; ++row) copy_row(m, row, 0, row != other);
    m.c[other][other % 8] += 1;
    check(m);
  }
}

TEST_F(MatrixRows, TheSameAWithAnotherBAndAnotherAWithTheSameB) {
  ASSERT_TRUE(bench_.ready());
  Matrices m = random_matrices(200);
  check(m);
  for (int k = 0; k < kDepth; ++k) m.b[k][k % 8] ^= 1;
  check(m);
  for (int row = 0; row < kRows; ++row) {
    m.a[row][15 - row] ^= 1;
    check(m);
  }
}

// Fails where a row of D is written before the row of C is read whose register it takes.
TEST(MatrixRegisters, ThoseOfDMayBeThoseOfCInAnyOrder) {
  for (const char* d : {"%f1, %f2, %f3, %f4", "%f2, %f1, %f4, %f3", "%f3, %f4, %f1, %f2",
                        "%f4, %f3, %f2, %f1", "%f4, %f5, %f6, %f1"}) {
    SCOPED_TRACE(d);
    Bench bench(kernel_of(d), 80);
    Matrices m = random_matrices(300);
    check_on(bench, m);
    for (int first : {0, 8}) {  // fewer distinct rows in either half
      for (int row = first + 1; row < first + 8; ++row) {
        std::copy(std::begin(m.a[first]), std::end(m.a[first]), m.a[row]);
        std::copy(std::begin(m.c[first]), std::end(m.c[first]), m.c[row]);
      }
      check_on(bench, m);
    }
  }
}

}  // namespace
}  // namespace kv::simt::semantics
