// Classes, sums and tracefiles, from PTX text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/simt/profile/launch_profile.h"
#include "harness/simt/profile/lcov.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt::profile {
namespace {

std::unique_ptr<ptx::Module> parse(const std::string& code) {
  auto module = ptx::parse_module(
      ".version 9.0\n.target sm_80\n.file 1 \"a.cu\"\n.file 2 \"b.h\"\n.shared .b8 tile[64];\n"
      ".entry k(.param .u64 p) {\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
      ".reg .f32 %f<9>; .reg .f64 %d<4>;\n" +
      code + "\nret;\n}\n");
  EXPECT_TRUE(module.ok()) << code;
  return std::move(module).value();
}

TEST(InstructionClass, EachOpcodeHasItsOwn) {
  const std::pair<const char*, const char*> cases[] = {
      {"add.s32 %r1, %r2, %r3;", "integer"},
      {"fma.rn.f32 %f1, %f2, %f3, %f4;", "float"},
      {"add.f16x2 %r1, %r2, %r3;", "half"},
      {"add.f64 %d1, %d2, %d3;", "double"},
      {"ex2.approx.f32 %f1, %f2;", "special"},
      {"cvt.f32.s32 %f1, %r1;", "convert"},
      {"setp.lt.s32 %p1, %r1, %r2;", "compare"},
      {"mov.u32 %r1, %tid.x;", "move"},
      {"shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;", "lane"},
      {"ld.global.f32 %f1, [%rd1];", "global"},
      {"st.f32 [%rd1], %f1;", "global"},
      {"ld.shared.f32 %f1, [tile];", "shared"},
      {"ld.param.u64 %rd1, [p];", "constant"},
      {"ld.local.f32 %f1, [%rd1];", "local"},
      {"atom.global.add.u32 %r1, [%rd1], %r2;", "atomic"},
      {"cp.async.wait_group 0;", "async"},
      {"bar.sync 0;", "barrier"},
      {"membar.gl;", "barrier"},
      {"trap;", "other"},
  };
  for (const auto& [code, name] : cases) {
    EXPECT_STREQ(class_name(class_of(parse(code)->functions[0].code[0])), name) << code;
  }
}

TEST(LaunchProfile, SumsAndPeaks) {
  LaunchProfile a, b;
  a.kernel = "first";
  a.counters.warps = 3;
  a.counters.global_load_sectors = 4;
  a.counters.global_bytes_read_distinct = 100;
  a.counters.shared_bytes_peak = 64;
  a.instructions[0] = 5;
  b = a;
  b.counters.shared_bytes_peak = 32;
  b.number = 2;
  const auto json = nlohmann::json::parse(profile_json(std::vector{a, b}));
  EXPECT_EQ(json["launches"].size(), 2u);
  EXPECT_EQ(json["launches"][1]["shared_bytes_peak"], 32);
  EXPECT_EQ(json["sum"]["warps"], 6);
  EXPECT_EQ(json["sum"]["global_bytes_moved"], 256);
  EXPECT_EQ(json["sum"]["global_bytes_compulsory"], 200);
  EXPECT_EQ(json["sum"]["shared_bytes_peak"], 64);
  EXPECT_EQ(json["sum"]["instructions"]["integer"], 10);
  EXPECT_EQ(difference(a.counters, b.counters).warps, 0u);
}

TEST(Lcov, LinesOfAllFunctionsAndFiles) {
  const auto module = parse(
      ".loc 1 7 1\nadd.s32 %r1, %r2, %r3;\nadd.s32 %r1, %r2, %r3;\n.loc 2 9 1\n"
      "add.s32 %r1, %r2, %r3;\n.loc 1 5 1\n");
  const uint64_t counts[] = {2, 3, 0, 4};
  const auto executions = [&](uint32_t, uint32_t instruction) { return counts[instruction]; };
  LineCoverage coverage;
  coverage.add(*module, executions);
  coverage.add(*module, executions);
  EXPECT_EQ(coverage.lcov(),
            "TN:\nSF:a.cu\nDA:5,8\nDA:7,6\nLF:2\nLH:2\nend_of_record\n"
            "TN:\nSF:b.h\nDA:9,0\nLF:1\nLH:0\nend_of_record\n");
}

}  // namespace
}  // namespace kv::simt::profile
