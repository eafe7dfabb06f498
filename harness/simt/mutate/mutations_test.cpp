// Each operator changes what it says and nothing else.
#include "harness/simt/mutate/mutations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/print.h"

namespace kv::simt::mutate {
namespace {

std::string module_with(const std::string& code) {
  return ".version 9.0\n.target sm_80\n.shared .b8 tile[64];\n.entry k(.param .u64 p) {\n"
         ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 "
         "%f<9>;\n" +
         code + "\nDONE:\nret;\n}\n";
}

std::unique_ptr<ptx::Module> parse(const std::string& code) {
  auto module = ptx::parse_module(module_with(code));
  EXPECT_TRUE(module.ok()) << code << ": " << (module.ok() ? "" : module.error().message);
  return module.ok() ? std::move(module).value() : nullptr;
}

/// "operator.variant: text" of every change, in order.
std::vector<std::string> changes(const std::string& code) {
  const auto module = parse(code);
  if (!module) return {};
  const ptx::Function& f = module->functions[0];
  std::vector<std::string> all;
  for (const Mutation& m : mutations_of(f, f.code[0])) {
    all.push_back(std::string(operator_name(m.op)) + "." + std::to_string(m.variant) + ": " +
                  changed_text(f, m.changed));
  }
  return all;
}

using List = std::vector<std::string>;

TEST(Mutations, Comparisons) {
  EXPECT_EQ(changes("setp.lt.s32 %p1, %r1, %r2;"), List({"compare.0: setp.le.s32 %p1, %r1, %r2;",
                                                         "compare.1: setp.ge.s32 %p1, %r1, %r2;"}));
  EXPECT_EQ(changes("setp.eq.s32 %p1, %r1, %r2;"), List({"compare.1: setp.ne.s32 %p1, %r1, %r2;"}));
  EXPECT_EQ(changes("max.f32 %f1, %f2, %f3;"), List({"compare.0: min.f32 %f1, %f2, %f3;"}));
}

TEST(Mutations, Constants) {
  EXPECT_EQ(changes("or.b32 %r1, %r2, 7;"),
            List({"constant.4: or.b32 %r1, %r2, 8;", "constant.5: or.b32 %r1, %r2, 6;"}));
  EXPECT_EQ(changes("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];"),
            List({"constant.2: ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+32];",
                  "constant.3: ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
                  "swap.1: ld.global.v4.f32 {%f2, %f1, %f3, %f4}, [%rd1+16];"}));
  EXPECT_EQ(changes("ld.param.u64 %rd1, [p];"), List());
  EXPECT_EQ(changes("mov.b32 %f1, 0f3F800000;"), List());
  EXPECT_EQ(changes("mov.pred %p1, 1;"), List());
}

TEST(Mutations, Swaps) {
  EXPECT_EQ(changes("sub.f32 %f1, %f2, %f3;"),
            List({"swap.0: sub.f32 %f1, %f3, %f2;", "add_sub.0: add.f32 %f1, %f2, %f3;"}));
  EXPECT_EQ(changes("sub.f32 %f1, %f2, %f2;"), List({"add_sub.0: add.f32 %f1, %f2, %f2;"}));
  EXPECT_EQ(changes("fma.rn.f32 %f1, %f2, %f3, %f4;"),
            List({"swap.0: fma.rn.f32 %f1, %f4, %f3, %f2;"}));
  EXPECT_EQ(changes("mov.b32 %r1, {%h1, %h2};"), List({"swap.2: mov.b32 %r1, {%h2, %h1};"}));
}

TEST(Mutations, Synchronisation) {
  EXPECT_EQ(changes("bar.sync 0;"), List({"barrier.0: (nothing)"}));
  EXPECT_EQ(changes("membar.gl;"), List({"fence.0: (nothing)"}));
  EXPECT_EQ(changes("cp.async.wait_group 1;"),
            List({"wait.0: (nothing)", "wait.1: cp.async.wait_group 2;"}));
  EXPECT_EQ(changes("cp.async.commit_group;"), List({"wait.0: (nothing)"}));
}

TEST(Mutations, GuardsShiftsLanes) {
  EXPECT_EQ(changes("@!%p1 bra DONE;"),
            List({"negate.0: @%p1 bra DONE;", "guard.0: bra DONE;", "guard.1: (nothing)"}));
  EXPECT_EQ(
      changes("@%p1 st.shared.f32 [tile], %f1;"),
      List({"constant.0: @%p1 st.shared.f32 [tile+4], %f1;",
            "constant.1: @%p1 st.shared.f32 [tile-4], %f1;",
            "negate.0: @!%p1 st.shared.f32 [tile], %f1;", "guard.0: st.shared.f32 [tile], %f1;"}));
  EXPECT_EQ(changes("shr.u32 %r1, %r2, 5;"),
            List({"shift.4: shr.u32 %r1, %r2, 6;", "shift.5: shr.u32 %r1, %r2, 4;"}));
  EXPECT_EQ(changes("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;"),
            List({"lane.0: shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;",
                  "lane.1: shfl.sync.bfly.b32 %r1|%p1, %r2, 17, 31, -1;",
                  "lane.2: shfl.sync.bfly.b32 %r1|%p1, %r2, 0, 31, -1;"}));
}

TEST(Mutations, NarrowedAddresses) {
  EXPECT_EQ(changes("mul.wide.s32 %rd1, %r1, %r2;"),
            List({"narrow.0: mul.wide.s32 %rd1, %r1, %r2; (cut to 32 bits)"}));
  EXPECT_EQ(changes("mul.lo.s32 %r1, %r2, %r3;"), List());
}

TEST(Mutations, WhatHasNoChange) {
  EXPECT_EQ(changes("ret;"), List());
  EXPECT_EQ(changes("bra DONE;"), List());
  EXPECT_EQ(changes("mov.u32 %r1, %tid.x;"), List());
}

}  // namespace
}  // namespace kv::simt::mutate
