#include "harness/simt/ptx/parse.h"

#include <gtest/gtest.h>

namespace kv::simt::ptx {
namespace {

using Kind = Operand::Kind;

std::unique_ptr<Module> parse(const std::string& rest) {
  auto module = parse_module(".version 9.0\n.target sm_80\n.address_size 64\n" + rest);
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message;
    return std::make_unique<Module>();
  }
  return std::move(module).value();
}

std::unique_ptr<Module> parse_body(const std::string& body) {
  auto module =
      parse(".visible .entry k(.param .u64 a, .param .align 8 .b8 b[12])\n{\n" + body + "\n}\n");
  if (module->functions.empty()) module->functions.emplace_back().code.resize(99);
  return module;
}

TEST(Parse, Head) {
  auto module = parse_module(".version 8.7\n.target sm_90a, debug\n.address_size 64\n");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->isa_major, 8u);
  EXPECT_EQ((*module)->isa_minor, 7u);
  EXPECT_EQ((*module)->target_sm, 90u);
}

TEST(Parse, ParametersAndDirectives) {
  auto module = parse(
      ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);\n"
      ".weak .entry k(.param .u8 c, .param .u64 .ptr .global .align 4 p, .param .align 16 .b8 "
      "s[20],"
      " .param .v2 .f32 v)\n.maxntid 128, 2\n.reqntid 64\n.minnctapersm 2\n.maxnreg 64\n"
      ".explicitcluster\n.reqnctapercluster 2,1,1\n.maxclusterrank 8\n.noreturn\n{ret;}\n"
      ".func f .noreturn {trap;}\n.func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);");
  ASSERT_EQ(module->functions.size(), 3u);
  EXPECT_FALSE(module->functions[0].has_body);
  EXPECT_EQ(module->functions[0].returns.size(), 1u);
  const Function& kernel = module->functions[1];
  EXPECT_TRUE(kernel.is_entry && kernel.has_body);
  ASSERT_EQ(kernel.parameters.size(), 4u);
  EXPECT_EQ(kernel.parameters[1].offset_bytes, 8u);
  EXPECT_EQ(kernel.parameters[2].offset_bytes, 16u);
  EXPECT_EQ(kernel.parameters[2].size_bytes, 20u);
  EXPECT_EQ(kernel.parameters[3].offset_bytes, 40u);
  EXPECT_EQ(kernel.parameter_bytes, 48u);
  EXPECT_EQ(kernel.max_threads[0], 128u);
  EXPECT_EQ(kernel.max_threads[1], 2u);
  EXPECT_EQ(kernel.max_threads[2], 1u);
  EXPECT_EQ(kernel.required_threads[0], 64u);
}

TEST(Parse, Initialisers) {
  auto module = parse(
      ".const .align 4 .f32 f[2] = {0f3F800000, -1.5};\n"
      ".global .u32 m[3][2] = {{1, 2}, {3}, {(2+3)*4 - 1, ~0}};\n"
      ".global .u16 open[] = {1, 2, 3};\n"
      ".global .u64 p[3] = {generic(m)+8, m - 4, 5};\n"
      ".global .v2 .u32 v = {7, 8};\n"
      ".global .u64 self = self;\n"
      ".global .align 1 .b8 packed[9] = {1, 0XFF(generic(m)), 0xFF00(generic(m)),"
      " 0xFF0000(generic(m)), 0xFF000000(generic(m)), 0xFF00000000(generic(m)),"
      " 0xFF0000000000(generic(m)), 0xFF000000000000(generic(m)), "
      "0xFF00000000000000(generic(m))};\n"
      ".extern .shared .align 16 .b8 dyn[];\n.visible .global .attribute(.managed) .b32 z;");
  const auto& v = module->variables;
  ASSERT_EQ(v.size(), 9u);
  EXPECT_EQ(v[0].initial, (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0xbf}));
  EXPECT_EQ(v[1].size_bytes, 24u);
  EXPECT_EQ(v[1].initial[8], 3);
  EXPECT_EQ(v[1].initial[12], 0);
  EXPECT_EQ(v[1].initial[16], 19);
  EXPECT_EQ(v[1].initial[20], 0xff);
  EXPECT_EQ(v[2].size_bytes, 6u);
  ASSERT_EQ(v[3].relocations.size(), 2u);
  EXPECT_TRUE(v[3].relocations[0].generic);
  EXPECT_EQ(v[3].relocations[0].addend, 8);
  EXPECT_EQ(v[3].relocations[1].addend, -4);
  EXPECT_EQ(v[3].relocations[1].offset, 8u);
  EXPECT_EQ(v[3].relocations[1].target.index, 1);
  EXPECT_EQ(v[3].initial[16], 5);
  EXPECT_EQ(v[4].align_bytes, 8u);
  EXPECT_EQ(v[4].initial[4], 8);
  EXPECT_EQ(v[5].relocations[0].symbol, "self");
  ASSERT_EQ(v[6].relocations.size(), 1u);
  EXPECT_EQ(v[6].relocations[0].offset, 1u);
  EXPECT_EQ(v[6].relocations[0].bytes, 8u);
  EXPECT_TRUE(v[7].is_extern);
  EXPECT_EQ(v[7].size_bytes, 0u);
  EXPECT_EQ(v[7].align_bytes, 16u);
}

TEST(Parse, ExternIsCompletedLater) {
  auto module =
      parse(".extern .global .u32 x;\n.visible .global .u32 x = 3;\n.extern .global .u32 x;");
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_FALSE(module->variables[0].is_extern);
  EXPECT_EQ(module->variables[0].initial[0], 3);
}

TEST(Parse, OperandForms) {
  auto module = parse_body(
      ".shared .align 4 .b8 sm[64];\n.reg .pred %p<3>; .reg .b32 %r<9>, x; .reg .b64 %rd<2>;\n"
      ".reg .v4 .f32 v;\n"
      "ld.param.u32 %r1, [b+4];\n"
      "ld.global.v2.u32 {%r1, _}, [%rd1+-8];\n"
      "mov.u64 %rd0, a;\n"
      "mov.u32 x, sm+12;\n"
      "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p0;\n"
      "mov.f32 v.y, 0fBF800000;\n"
      "st.shared.v4.f32 [sm], v;\n"
      "mov.u32 %r0, %ctaid.z;\n"
      "mov.u32 %r8, WARP_SZ;\n"
      "shl.b32 %r1, %r1, (1 << 2) | 1;\n"
      "ld.global.u32 %r1, [4096];\n"
      "cp.async.bulk.tensor.2d.shared::cta.global [sm], [%rd1, {%r1, %r2}], [sm+8];\n"
      "elect.sync _|%p1, -1;\n"
      "mul .lo .u32 %r1, %r1, 0x7fffffff;\n");
  const Function& f = module->functions[0];
  const auto& code = f.code;
  ASSERT_EQ(code.size(), 15u);
  EXPECT_EQ(code[0].operands[1].kind, Kind::kAddress);
  EXPECT_EQ(code[0].operands[1].symbol_ref.kind, SymbolRef::Kind::kParameter);
  EXPECT_EQ(code[0].operands[1].symbol_ref.index, 1);
  EXPECT_EQ(code[0].operands[1].immediate, 4);
  EXPECT_EQ(code[1].operands[0].elements[1].kind, Kind::kDiscard);
  EXPECT_EQ(code[1].operands[1].immediate, -8);
  EXPECT_EQ(f.registers[size_t(code[1].operands[1].index)].name, "%rd1");
  EXPECT_EQ(code[2].operands[1].symbol, "a");
  EXPECT_EQ(code[3].operands[1].immediate, 12);
  EXPECT_EQ(code[3].operands[1].symbol_ref.kind, SymbolRef::Kind::kFunctionVariable);
  EXPECT_EQ(code[4].operands[0].kind, Kind::kPair);
  EXPECT_EQ(code[4].operands[2].immediate, -5);
  EXPECT_TRUE(code[4].operands[3].negated);
  EXPECT_EQ(code[4].modifiers, (std::vector<std::string_view>{"lt", "and", "s32"}));
  EXPECT_EQ(f.registers[size_t(code[5].operands[0].index)].name, "v.y");
  EXPECT_EQ(code[5].operands[1].immediate_kind, Operand::ImmediateKind::kF32);
  ASSERT_EQ(code[6].operands[1].elements.size(), 4u);
  EXPECT_EQ(code[6].operands[1].elements[3].index, code[5].operands[0].index + 2);
  EXPECT_EQ(code[7].operands[1].kind, Kind::kSpecial);
  EXPECT_EQ(code[7].operands[1].symbol, "%ctaid.z");
  EXPECT_EQ(code[8].operands[1].immediate, 32);
  EXPECT_EQ(code[9].operands[2].immediate, 5);
  EXPECT_EQ(code[10].operands[1].immediate, 4096);
  EXPECT_EQ(code[10].operands[1].index, -1);
  EXPECT_EQ(code[11].operands[1].elements[0].elements.size(), 2u);
  EXPECT_EQ(code[12].operands[0].elements[0].kind, Kind::kDiscard);
  EXPECT_EQ(code[13].text, "mul.lo.u32");
  EXPECT_EQ(code[13].modifiers.size(), 2u);
  EXPECT_EQ(code[14].opcode, "ret");  // appended
}

TEST(Parse, ScopesHideNamesAndLabels) {
  auto module = parse_body(
      ".reg .b32 r, %t<2>;\n"
      "{ .reg .b32 r; .reg .pred p; @p bra DONE; mov.u32 r, 1; @!p bra OUT; DONE: }\n"
      "{ .reg .b32 %t<3>; .reg .pred p; @p bra DONE; mov.u32 r, %t2; DONE: mov.u32 r, %t1; }\n"
      "mov.u32 r, %t1;\nOUT:\n");
  const auto& code = module->functions[0].code;
  ASSERT_EQ(code.size(), 8u);
  EXPECT_EQ(code[0].operands[0].index, 3);  // DONE of the first block
  EXPECT_EQ(code[2].operands[0].index, 7);  // OUT, defined by the enclosing block
  EXPECT_TRUE(code[2].guard_negated);
  EXPECT_EQ(code[3].operands[0].index, 5);
  EXPECT_NE(code[1].operands[0].index, code[4].operands[0].index);  // inner r, outer r
  EXPECT_NE(code[5].operands[1].index, code[6].operands[1].index);  // inner %t1, outer %t1
  EXPECT_EQ(code[7].text, "ret");
}

TEST(Parse, Calls) {
  auto module = parse(
      ".func (.param .b32 r) f (.param .b64 x) { st.param.b32 [r+0], 1; ret; }\n.func g;\n"
      ".entry k {\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
      "{ .param .b64 param0; st.param.b64 [param0+0], %rd1; .param .b32 retval0;\n"
      "call.uni (retval0),\nf,\n(\nparam0\n);\nld.param.b32 %r1, [retval0+0]; }\n"
      "{ .param .b32 param0; st.param.b32 [param0], 1; call g; call.uni g, (param0); }\n"
      "proto: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
      "call (%r1), %rd1, (%rd1), proto;\n}\n");
  ASSERT_EQ(module->functions.size(), 3u);
  const Function& k = module->functions[2];
  const Instruction& call = k.code[1];
  EXPECT_EQ(call.callee, "f");
  EXPECT_EQ(call.callee_ref.kind, SymbolRef::Kind::kFunction);
  EXPECT_EQ(call.callee_ref.index, 0);
  EXPECT_EQ(call.call_returns[0].symbol, "retval0");
  EXPECT_EQ(call.call_arguments[0].symbol, "param0");
  EXPECT_EQ(k.variables[2].name, "param0#2");
  EXPECT_EQ(k.code[3].operands[0].symbol, "param0#2");
  EXPECT_EQ(k.code[3].operands[0].symbol_ref.index, 2);
  EXPECT_TRUE(k.code[4].call_arguments.empty());
  EXPECT_EQ(k.code[6].callee_ref.kind, SymbolRef::Kind::kNone);
  EXPECT_EQ(k.code[6].operands[0].kind, Kind::kRegister);
  EXPECT_EQ(module->functions[0].code[0].operands[0].symbol_ref.kind, SymbolRef::Kind::kReturn);
}

TEST(Parse, BranchTable) {
  auto module =
      parse_body(".reg .b32 r;\nA: B:\nt: .branchtargets A, C, B;\nbrx.idx r, t;\nC: bra.uni A;\n");
  const auto& code = module->functions[0].code;
  ASSERT_EQ(code.size(), 2u);  // nothing falls off the end
  const auto& targets = code[0].operands[1].elements;
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_EQ(targets[0].index, 0);
  EXPECT_EQ(targets[1].index, 1);
  EXPECT_EQ(targets[2].index, 0);
}

TEST(Parse, PragmasReachTheNextLoadOnly) {
  auto module = parse_body(
      ".reg .b32 %r<5>; .reg .b64 d;\n.pragma \"nounroll\";\n.pragma \"used_bytes_mask 0xff0f\";\n"
      "add.u32 %r1, %r1, 1;\nld.global.v4.u32 {%r1,%r2,%r3,%r4}, [d];\nld.global.u32 %r1, [d];\n");
  const auto& code = module->functions[0].code;
  EXPECT_EQ(code[0].used_bytes_mask, 0u);
  EXPECT_EQ(code[1].used_bytes_mask, 0xff0fu);
  EXPECT_EQ(code[2].used_bytes_mask, 0u);
}

TEST(Parse, OutermostInliningSite) {
  auto module = parse_body(
      ".reg .b32 r;\n.loc 1 10 3\nmov.u32 r, 0;\n"
      ".loc 1 7 3, function_name $L0, inlined_at 1 10 3\n"
      ".loc 2 2 3, function_name $L1+4, inlined_at 1 7 3\nmov.u32 r, 1;\n"
      ".loc 1 7 3\n.loc 2 2 3, function_name $L1, inlined_at 1 7 3\nmov.u32 r, 2;\n}\n"
      ".file 1 \"a.cu\"\n.file 2 \"b.h\", 123, 45\n.section .debug_str { $L0: .b8 1,2 $L1: .b8 3 "
      "}\n"
      ".entry last { ret;");
  const auto& code = module->functions[0].code;
  EXPECT_EQ(code[0].where.file, "a.cu");
  EXPECT_EQ(code[0].where.line, 10u);
  EXPECT_EQ(code[0].where.inlined_at_file, "");
  EXPECT_EQ(code[1].where.file, "b.h");
  EXPECT_EQ(code[1].where.line, 2u);
  EXPECT_EQ(code[1].where.inlined_at_file, "a.cu");
  EXPECT_EQ(code[1].where.inlined_at_line, 10u);
  EXPECT_EQ(code[2].where.inlined_at_line, 7u);
}

}  // namespace
}  // namespace kv::simt::ptx
