#include "harness/simt/ptx/cfg.h"

#include <gtest/gtest.h>

#include "harness/simt/ptx/parse.h"

namespace kv::simt::ptx {
namespace {

using Edges = std::vector<std::vector<uint32_t>>;

Edges edges(const std::string& body) {
  auto module = parse_module(
      ".version 9.0\n.target sm_80\n.entry k {\n.reg .pred p; .reg .b32 r;\n" + body + "\n}");
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  const Function& function = (*module)->functions[0];
  const Cfg cfg = build_cfg(function);
  Edges all;
  uint32_t next = 0;
  for (const BasicBlock& block : cfg.blocks) {
    EXPECT_EQ(block.begin, next);
    EXPECT_LT(block.begin, block.end);
    for (uint32_t i = block.begin; i < block.end; ++i) {
      EXPECT_EQ(cfg.block_of[i], all.size());
    }
    next = block.end;
    all.push_back(block.successors);
  }
  EXPECT_EQ(next, function.code.size());
  return all;
}

TEST(Cfg, StraightLineIsOneBlock) { EXPECT_EQ(edges("mov.u32 r, 0; ret;"), Edges({{}})); }

TEST(Cfg, IfAndLoop) {
  EXPECT_EQ(edges("@p bra A; mov.u32 r, 0; A: mov.u32 r, 1; @!p bra A; ret;"),
            Edges({{1, 2}, {2}, {2, 3}, {}}));
}

TEST(Cfg, UnguardedBranchDoesNotFallThrough) {
  EXPECT_EQ(edges("bra A; mov.u32 r, 0; A: ret;"), Edges({{2}, {2}, {}}));
}

TEST(Cfg, GuardedExitFallsThroughAndTrapDoesNot) {
  EXPECT_EQ(edges("@p exit; @p ret; @p trap; trap;"), Edges({{1}, {2}, {3}, {}}));
}

TEST(Cfg, BranchTableAndRepeatedTargets) {
  EXPECT_EQ(edges("A: mov.u32 r, 0; t: .branchtargets A, B, A; brx.idx r, t; B: bra.uni A;"),
            Edges({{0, 1}, {0}}));
}

TEST(Cfg, LabelAtTheEndIsTheAppendedReturn) {
  EXPECT_EQ(edges("@p bra END; trap; END:"), Edges({{1, 2}, {}, {}}));
}

}  // namespace
}  // namespace kv::simt::ptx
