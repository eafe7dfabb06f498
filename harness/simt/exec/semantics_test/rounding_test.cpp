// The profiles of approximate arithmetic: within the bounds of the PTX ISA, and a function of
// profile, seed and operands only. Source: PTX ISA 9.0 section 9.7.3.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/simt/exec/semantics_test/bench.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/real.h"
#include "harness/simt/exec/semantics_test/values.h"

namespace kv::simt::semantics {
namespace {

using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

struct Row {
  const char* opcode;
  Function function;
  double relative;    // documented bound, 2 ulp written as 2^-22
  float least, most;  // operands tried
};

int reciprocal(mpfr_ptr to, mpfr_srcptr from, mpfr_rnd_t mode) {
  return mpfr_ui_div(to, 1, from, mode);
}

const Row kRows[] = {
    {"ex2.approx.ftz.f32", mpfr_exp2, 0x1.4p-22, -60, 60},
    {"rcp.approx.ftz.f32", reciprocal, 0x1.8p-23, 0.001f, 1000},
    {"sqrt.approx.ftz.f32", mpfr_sqrt, 0x1p-23, 0.001f, 1000},
    {"rsqrt.approx.ftz.f32", mpfr_rec_sqrt, 0x1.13p-23, 0.001f, 1000},
    {"lg2.approx.ftz.f32", mpfr_log2, 0x1p-22, 2, 1000},
    {"tanh.approx.f32", mpfr_tanh, 0x1p-11, -4, 4},
};

constexpr uint32_t kProfiles[] = {KV_SIMT_ROUNDING_NEAREST,    KV_SIMT_ROUNDING_RANDOM,
                                  KV_SIMT_ROUNDING_UP,         KV_SIMT_ROUNDING_DOWN,
                                  KV_SIMT_ROUNDING_MMA_AMPERE, KV_SIMT_ROUNDING_MMA_HOPPER};

std::vector<uint64_t> results(const Form& form, uint32_t profile,
                              const std::vector<uint64_t>& operands) {
  Bench bench(module_text(form), 80, profile);
  if (!bench.ready()) return {};
  std::vector<uint64_t> rows;  // of two words
  for (uint64_t operand : operands) rows.insert(rows.end(), {operand, 0});
  const uint64_t from = bench.upload(rows), to = bench.reserve(rows.size() * 8);
  LaunchShape shape;
  shape.grid = {uint32_t(operands.size() / 128), 1, 1};
  shape.block = {128, 1, 1};
  if (bench.launch(shape, {from, to, kExtra[0], kExtra[1]}) != Bench::Ran::kToItsEnd) return {};
  std::vector<uint64_t> got = bench.download<uint64_t>(to, rows.size()), values;
  for (size_t i = 0; i < got.size(); i += 2) values.push_back(got[i]);
  return values;
}

/// Operands whose results are 0, exactly or by underflow: no profile may make them negative.
TEST(Rounding, NoProfileGivesAZeroAnotherSign) {
  struct Zero {
    const char* opcode;
    std::vector<float> operands;
  };
  const float infinity = INFINITY;
  for (const auto& [opcode, values] :
       {Zero{"ex2.approx.ftz.f32", {-infinity, -127.5f, -149, -160, -200, -1e30f}},
        Zero{"ex2.approx.f32", {-infinity, -149, -160, -200, -1e30f}},
        Zero{"rcp.approx.ftz.f32", {infinity, 3e38f}}, Zero{"rsqrt.approx.ftz.f32", {infinity}},
        Zero{"sqrt.approx.ftz.f32", {0.0f}}}) {
    std::vector<uint64_t> operands;
    for (size_t i = 0; i < 128; ++i)
      operands.push_back(std::bit_cast<uint32_t>(values[i % values.size()]));
    const Form form{.text = opcode, .to = {"f32"}, .from = {"f32"}};
    for (const uint32_t profile : kProfiles) {
      for (const uint64_t got : results(form, profile, operands))
        EXPECT_EQ(got >> 31 & 1, 0u) << opcode << ", profile " << profile << ", " << got;
    }
  }
}

TEST(Rounding, EveryProfileKeepsTheDocumentedBound) {
  for (const Row& row : kRows) {
    const Form form{.text = row.opcode, .to = {"f32"}, .from = {"f32"}};
    std::vector<uint64_t> operands;
    for (int i = 0; i < 1024; ++i) {
      const float x = row.least + (row.most - row.least) * float(i) / 1023;
      operands.push_back(std::bit_cast<uint32_t>(x));
    }
    for (const uint32_t profile : kProfiles) {
      const auto got = results(form, profile, operands);
      ASSERT_EQ(got.size(), operands.size()) << row.opcode << ", profile " << profile;
      EXPECT_EQ(got, results(form, profile, operands)) << "not repeatable: " << row.opcode;
      double worst = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        Real exact(300);
        row.function(exact.get(), read(kF32, operands[i]).get(), MPFR_RNDN);
        if (exact.is_zero()) continue;
        worst = std::max(worst, std::fabs(divide(read(kF32, got[i]), exact).approximately() - 1));
      }
      EXPECT_LE(worst, row.relative) << row.opcode << ", profile " << profile;
    }
  }
}

/// The profiles must differ, or studying them says nothing.
TEST(Rounding, UpIsAboveDown) {
  for (const Row& row : kRows) {
    const Form form{.text = row.opcode, .to = {"f32"}, .from = {"f32"}};
    std::vector<uint64_t> operands;
    for (int i = 0; i < 128; ++i)
      operands.push_back(std::bit_cast<uint32_t>(1.1f + 0.01f * float(i)));
    const auto up = results(form, KV_SIMT_ROUNDING_UP, operands),
               down = results(form, KV_SIMT_ROUNDING_DOWN, operands);
    ASSERT_EQ(up.size(), down.size());
    size_t above = 0;
    for (size_t i = 0; i < up.size(); ++i) {
      EXPECT_GE(up[i], down[i]) << row.opcode;
      above += up[i] > down[i];
    }
    EXPECT_GT(above, up.size() / 2) << row.opcode;
  }
}

}  // namespace
}  // namespace kv::simt::semantics
