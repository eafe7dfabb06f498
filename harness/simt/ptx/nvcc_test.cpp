// What nvcc wrote for testdata/kernels.cu, read back.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/simt/ptx/cfg.h"
#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/testdata/read_file.h"

namespace kv::simt::ptx {
namespace {

class Nvcc : public testing::Test {
 protected:
  void SetUp() override {
    auto parsed = parse_module(read_testdata("kernels.ptx"));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    module_ = std::move(parsed).value();
  }
  const Function& function(std::string_view part) {
    for (const Function& f : module_->functions) {
      if (f.name.find(part) != std::string::npos) return f;
    }
    ADD_FAILURE() << part;
    return module_->functions[0];
  }
  const Variable& variable(std::string_view name) {
    for (const Variable& v : module_->variables) {
      if (v.name == name) return v;
    }
    ADD_FAILURE() << name;
    return module_->variables[0];
  }
  static std::vector<const Instruction*> all(const Function& f, std::string_view start) {
    std::vector<const Instruction*> found;
    for (const Instruction& i : f.code) {
      if (i.text.starts_with(start)) found.push_back(&i);
    }
    return found;
  }
  std::unique_ptr<Module> module_;
};

TEST_F(Nvcc, Variables) {
  EXPECT_EQ(module_->target_sm, 80u);
  EXPECT_EQ(variable("table").space, Space::kConst);
  EXPECT_EQ(variable("table").initial.size(), 16u);
  EXPECT_EQ(variable("table").initial[3], 0x3f);
  EXPECT_EQ(variable("counter").initial[0], 7);
  EXPECT_EQ(variable("pointers").size_bytes, 16u);
  EXPECT_EQ(variable("pointers").relocations[0].symbol, "counter");
  ASSERT_EQ(variable("packed").relocations.size(), 1u);  // eight masked bytes joined
  EXPECT_EQ(variable("packed").relocations[0].offset, 1u);
  EXPECT_EQ(variable("packed").relocations[0].bytes, 8u);
  EXPECT_EQ(variable("packed").initial[9], 5);
  EXPECT_TRUE(variable("dynamic").is_extern);
}

TEST_F(Nvcc, KernelParametersAndLaunchBounds) {
  const Function& f = function("branches");
  EXPECT_TRUE(f.is_entry);
  ASSERT_EQ(f.parameters.size(), 4u);
  EXPECT_EQ(f.parameters[2].offset_bytes, 16u);
  EXPECT_EQ(f.parameters[3].offset_bytes, 24u);
  EXPECT_EQ(f.parameters[3].size_bytes, 24u);
  EXPECT_EQ(f.parameter_bytes, 48u);
  EXPECT_EQ(f.max_threads[0], 128u);
  const auto is_depot = [](const Variable& v) { return v.space == Space::kLocal; };
  EXPECT_EQ(std::ranges::count_if(f.variables, is_depot), 1);
}

TEST_F(Nvcc, InlineAssemblyScopesAndLines) {
  const auto traps = all(function("branches"), "trap");
  ASSERT_EQ(traps.size(), 2u);
  for (const Instruction* trap : traps) {
    EXPECT_NE(trap->where.file.find("kernels.cu"), std::string_view::npos);
    EXPECT_EQ(trap->where.line, 31u);
    EXPECT_NE(trap->where.inlined_at_file.find("kernels.cu"), std::string_view::npos);
  }
  EXPECT_EQ(traps[0]->where.inlined_at_line, 39u);
  EXPECT_EQ(traps[1]->where.inlined_at_line, 40u);
  // `p` is another register in each copy, and DONE another label.
  const Instruction& first = *(traps[0] - 1);
  const Instruction& second = *(traps[1] - 1);
  EXPECT_EQ(first.text, "bra");
  EXPECT_NE(first.guard, second.guard);
  EXPECT_NE(first.operands[0].index, second.operands[0].index);
}

TEST_F(Nvcc, Calls) {
  const auto calls = all(function("branches"), "call.uni");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]->callee, "vprintf");
  EXPECT_FALSE(module_->functions[size_t(calls[0]->callee_ref.index)].has_body);
  EXPECT_TRUE(module_->functions[size_t(calls[1]->callee_ref.index)].has_body);
  EXPECT_EQ(calls[1]->call_arguments.size(), 2u);
  EXPECT_EQ(calls[1]->call_returns.size(), 1u);
  EXPECT_EQ(function("helper").returns[0].size_bytes, 4u);
}

TEST_F(Nvcc, MatrixInstructions) {
  const Function& f = function("matrix");
  const auto mma = all(f, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  ASSERT_EQ(mma.size(), 1u);
  ASSERT_EQ(mma[0]->operands.size(), 4u);
  EXPECT_EQ(mma[0]->operands[0].elements.size(), 4u);
  EXPECT_EQ(mma[0]->operands[2].elements.size(), 2u);
  const auto copy = all(f, "cp.async.cg");
  ASSERT_EQ(copy.size(), 1u);
  EXPECT_EQ(copy[0]->modifiers.back(), "L2::128B");
  EXPECT_EQ(copy[0]->operands.size(), 4u);
  EXPECT_EQ(all(f, "ldmatrix")[0]->operands[1].kind, Operand::Kind::kAddress);
  const auto shuffle = all(f, "shfl.sync.bfly.b32");
  EXPECT_EQ(shuffle[0]->operands[0].kind, Operand::Kind::kPair);
  EXPECT_NE(shuffle[0]->where.inlined_at_file.find("kernels.cu"), std::string_view::npos);
}

TEST_F(Nvcc, EveryReferenceIsInRange) {
  for (const Function& f : module_->functions) {
    const Cfg cfg = build_cfg(f);
    for (const BasicBlock& block : cfg.blocks) {
      for (uint32_t s : block.successors) EXPECT_LT(s, cfg.blocks.size());
    }
    for (const Instruction& i : f.code) {
      EXPECT_LT(i.guard, int32_t(f.registers.size()));
      for (const Operand& o : i.operands) {
        if (o.kind == Operand::Kind::kLabel) {
          EXPECT_LT(size_t(o.index), f.code.size());
        }
        if (o.kind == Operand::Kind::kRegister) {
          EXPECT_LT(size_t(o.index), f.registers.size());
        }
        if (o.kind == Operand::Kind::kSymbol) {
          EXPECT_NE(o.symbol_ref.kind, SymbolRef::Kind::kNone);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kv::simt::ptx
