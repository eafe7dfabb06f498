// What is printed is what nvcc wrote, token by token.
#include "harness/simt/ptx/print.h"

#include <gtest/gtest.h>

#include "harness/simt/ptx/lexer.h"
#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/testdata/read_file.h"

namespace kv::simt::ptx {
namespace {

/// The statement that begins at the instruction's opcode, or at its guard; without a "+0".
std::string written(const Module& module, const Instruction& ins) {
  const std::string_view text = module.text;
  size_t begin = size_t(ins.text.data() - text.data());
  if (ins.guard >= 0) begin = text.rfind('@', begin);
  std::string statement(text.substr(begin, text.find(';', begin) + 1 - begin));
  const size_t zero = statement.find("+0]");
  return zero == statement.npos ? statement : statement.erase(zero, 2);
}

bool same_token(const Token& a, const Token& b) {
  const bool number = a.kind == Token::Kind::kInteger || a.kind == Token::Kind::kFloat32 ||
                      a.kind == Token::Kind::kFloat64;
  return a.kind == b.kind && (number ? a.value == b.value : a.text == b.text);
}

::testing::AssertionResult same_tokens(std::string_view want, std::string_view got) {
  Lexer left(want), right(got);
  while (true) {
    const Token a = left.next(), b = right.next();
    if (!same_token(a, b)) {
      return ::testing::AssertionFailure() << "written: " << want << "\nprinted: " << got;
    }
    if (a.kind == Token::Kind::kEnd) return ::testing::AssertionSuccess();
  }
}

TEST(Print, EveryInstructionOfNvccReadsAsWritten) {
  const auto module = parse_module(read_testdata("kernels.ptx"));
  ASSERT_TRUE(module.ok());
  size_t printed = 0;
  for (const Function& f : (*module)->functions) {
    for (const Instruction& ins : f.code) {
      const std::string text = instruction_text(f, ins);
      if (text.find('#') != text.npos) continue;  // a call slot that the parser renamed
      const std::string want = written(**module, ins);
      if (want.starts_with("}")) continue;  // the closing ret that the parser adds
      EXPECT_TRUE(same_tokens(want, text));
      ++printed;
    }
  }
  EXPECT_GT(printed, 100u);
}

TEST(Print, HandWrittenForms) {
  const char* const forms[] = {
      "@!%p1 bra.uni DONE;",           "setp.lt.and.s32 %p0|%p1, %r1, -5, !%p1;",
      "mov.b32 %f1, 0f3F800000;",      "mov.f64 %d1, 0d3FF0000000000000;",
      "ld.shared.u32 %r1, [table+8];", "st.global.v2.u32 [%rd1-16], {%r1, _};",
      "mov.u32 %r1, %tid.x;",          "mov.u64 %rd1, table+4;",
      "ld.shared.u32 %r1, [16];",      "bar.sync 0;",
  };
  for (const char* form : forms) {
    const auto module = parse_module(
        ".version 9.0\n.target sm_80\n.shared .b8 table[64];\n.entry k() {\n"
        ".reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
        ".reg .f64 %d<4>;\n" +
        std::string(form) + "\nDONE:\nret;\n}\n");
    ASSERT_TRUE(module.ok()) << form << ": " << module.error().message;
    const Function& f = (*module)->functions[0];
    EXPECT_EQ(instruction_text(f, f.code[0]), form);
  }
}

}  // namespace
}  // namespace kv::simt::ptx
