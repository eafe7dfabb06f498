// Each bad construct: one error that names the line and the token.
#include <gtest/gtest.h>

#include "harness/simt/ptx/parse.h"

namespace kv::simt::ptx {
namespace {

struct Row {
  const char* text;  // after three lines of head
  const char* message;
};

std::string error_of(const std::string& text) {
  auto module = parse_module(".version 9.0\n.target sm_80\n.address_size 64\n" + text);
  return module.ok() ? "no error" : module.error().message;
}

TEST(ParseErrors, Module) {
  const Row rows[] = {
      {"foo", "PTX line 4: expected a directive, got 'foo'"},
      {".global .u33 x;", "PTX line 4: expected a type, '.align' or a vector size, got '.u33'"},
      {".global x;", "PTX line 4: expected a type, got 'x'"},
      {".global .u32 x", "PTX line 4: expected ';', got the end of the text"},
      {".global .u32 x;\n.global .u32 x;", "PTX line 5: expected a name not yet declared"},
      {".global .align 3 .b8 x;", "PTX line 4: expected a power of two as alignment, got '3'"},
      {".global .b8 x[99999999999999];", "expected an array extent of at most 2^36"},
      {".global .b64 x[65536][65536][65536];", "expected an array of at most 2^36 bytes, got 'x'"},
      {".global .b8 x[2] = {1, 2, 3};", "PTX line 4: expected fewer initial values, got '3'"},
      {".global .u32 x = 1.5;", "PTX line 4: expected an integer initial value, got '1.5'"},
      {".global .f32 x = 1;", "expected a floating-point initial value, got '1'"},
      {".global .u64 x = y;", "expected a declared register, variable, parameter or function, got"},
      {".shared .u32 x = 1;", "an initial value only for .global and .const variables, got 'x'"},
      {".global .u32 x = 1/0;", "expected a divisor other than zero, got '/'"},
      {".global .texref t;", "PTX line 4: '.texref': textures and surfaces are not supported"},
      {".alias a, b;", "PTX line 4: '.alias': function aliases are not supported"},
      {".local .u32 x;", "expected '.global', '.const', '.shared', '.entry' or '.func', got"},
      {".address_size 32", "PTX line 4: '32': only 64-bit addresses"},
      {".entry k(.reg .u32 x) {}", "'.reg': parameters in registers are not supported"},
      {".entry k {ret;}\n.entry k {ret;}", "PTX line 5: expected one definition of a function"},
      {".entry k(.param .b8 p[40000]) {}", "at most 32764 bytes of kernel parameters, got 'k'"},
      {".entry k .maxntid 1,2,3,4 {}", "expected at most three dimensions, got '4'"},
      {".entry k .fast {}", "expected a performance directive, '{' or ';', got '.fast'"},
      {".entry k(.param .u32 a, .param .u32 a) {}", "expected parameters with distinct names"},
      {"/* never closed", "got a comment that does not end '/*'"},
      {".section .debug_str { .b8 1", "'}' at the end of section .debug_str"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(error_of(row.text).find(row.message), std::string::npos)
        << row.text << "\n  got: " << error_of(row.text);
  }
}

TEST(ParseErrors, Body) {
  const Row rows[] = {
      {"mov.u32 %r9, 1;", "PTX line 6: expected a declared register, variable, parameter or"},
      {"mov.u32 %r1, %foo;", "got '%foo'"},
      {"mov.u32 %r1, %tid.q;", "got '%tid.q'"},
      {"mov.u32 %r01, 1;", "got '%r01'"},
      {"@%r1 bra A;", "PTX line 6: expected a predicate register after '@', got '%r1'"},
      {"bra NOWHERE;", "a label of this function or an enclosing block, got 'NOWHERE'"},
      {"{ IN: } bra IN;", "a label of this function or an enclosing block, got 'IN'"},
      {"A: A:", "expected a label not yet defined in its block, got 'A'"},
      {"add.u32 %r1, %r1, 1", "PTX line 7: expected ';', got '}'"},
      {"add.u32 %r1, , 1;", "PTX line 6: expected a constant, got ','"},
      {"add.u32 %r1, {%r1, {%r1}};", "expected a register or constant, got '{'"},
      {"ld.u32 %r1, [%r1;", "expected ']', got ';'"},
      {"ld.u32 %r1, [1.5];", "expected an integer address, got '1.5'"},
      {"ld.u32 %r1, [%r1+0f3F800000];", "expected an integer offset, got '+'"},
      {"call nofunc;", "got 'nofunc'"},
      {"call (%r1), v;", "PTX line 6: expected a function, got 'v'"},
      {"brx.idx %r1, t;", "expected the label of a .branchtargets directive, got 't'"},
      {".reg .b32 %r<5>;", "expected a name not yet declared in its scope, got '%r'"},
      {".reg .b32 x<1000000>;", "expected a register count of at most 262144, got '1000000'"},
      {".reg .v4 .b32 x<2>;", "ranges of vector registers are not supported"},
      {".pragma \"used_bytes_mask x\";", "expected used_bytes_mask with a 32-bit number"},
      {"setp.eq.u32 %p0|5, %r1, 1;", "expected a register after '|', got '5'"},
      {"mov.pred %p0, !5;", "a constant without '!' or a register after it"},
      {"\x01", "got an unexpected character '?'"},
  };
  for (const Row& row : rows) {
    const std::string text = std::string(".global .u32 v;\n.entry k { .reg .pred %p<2>; ") +
                             ".reg .b32 %r<3>;\n" + row.text + "\n}";
    EXPECT_NE(error_of(text).find(row.message), std::string::npos)
        << row.text << "\n  got: " << error_of(text);
  }
}

TEST(ParseErrors, Head) {
  EXPECT_FALSE(parse_module("").ok());
  EXPECT_FALSE(parse_module(".version nine\n").ok());
  EXPECT_FALSE(parse_module(".version 9.0\n.target gpu\n").ok());
  EXPECT_FALSE(parse_module(".version 1e5\n.target sm_80\n").ok());
  EXPECT_TRUE(parse_module(".version 9.0\n.target sm_80\n").ok());
}

}  // namespace
}  // namespace kv::simt::ptx
