#include "harness/simt/ptx/lexer.h"

#include <gtest/gtest.h>

namespace kv::simt::ptx {
namespace {

using Kind = Token::Kind;

void expect_one(std::string_view text, Kind kind, uint64_t value) {
  Lexer lexer(text);
  const Token token = lexer.next();
  EXPECT_EQ(token.kind, kind) << text;
  EXPECT_EQ(token.value, value) << text;
  EXPECT_EQ(token.text, text);
  EXPECT_EQ(lexer.next().kind, Kind::kEnd) << text;
}

TEST(Lexer, Numbers) {
  expect_one("0", Kind::kInteger, 0);
  expect_one("0U", Kind::kInteger, 0);
  expect_one("42", Kind::kInteger, 42);
  expect_one("42U", Kind::kInteger, 42);
  expect_one("0x1Fu", Kind::kInteger, 31);
  expect_one("017", Kind::kInteger, 15);
  expect_one("0b101", Kind::kInteger, 5);
  expect_one("18446744073709551615", Kind::kInteger, UINT64_MAX);
  expect_one("0f3F800000", Kind::kFloat32, 0x3f800000);
  expect_one("0F7fffffff", Kind::kFloat32, 0x7fffffff);
  expect_one("0d3FF0000000000000", Kind::kFloat64, 0x3ff0000000000000);
  expect_one("1.5", Kind::kFloat64, 0x3ff8000000000000);
  expect_one("1e3", Kind::kFloat64, 0x408f400000000000);
  expect_one(".5", Kind::kFloat64, 0x3fe0000000000000);
}

TEST(Lexer, BadNumbersAreOneBadToken) {
  for (const char* text : {"18446744073709551616", "0x1ffffffffffffffff", "0f3F80000", "0d3FF0",
                           "0x", "08", "12ab", "1e99999", "0b2", "0f3F8000000"}) {
    Lexer lexer(text);
    EXPECT_EQ(lexer.next().kind, Kind::kBad) << text;
    EXPECT_FALSE(lexer.complaint().empty()) << text;
    EXPECT_EQ(lexer.next().kind, Kind::kBad) << text;
  }
}

TEST(Lexer, WordsKeepDotsAndDoubleColons) {
  for (const char* text : {"mma.sync.aligned.m16n8k16", "%tid.x", "$L__BB0_2", "_", ".reg", "%p1",
                           "cp.async.cg.shared.global.L2::128B", "_Z3foov"}) {
    expect_one(text, Kind::kWord, 0);
  }
  Lexer label("DONE:: :");
  EXPECT_EQ(label.next().text, "DONE");
  EXPECT_TRUE(label.next().is(':'));
}

TEST(Lexer, LinesAndComments) {
  Lexer lexer("a // b\n/* c\n d */ e \"f // g\"\n\n;");
  EXPECT_EQ(lexer.next().text, "a");
  const Token e = lexer.next();
  EXPECT_EQ(e.text, "e");
  EXPECT_EQ(e.line, 3u);
  const Token string = lexer.next();
  EXPECT_EQ(string.kind, Kind::kString);
  EXPECT_EQ(string.text, "f // g");
  EXPECT_EQ(lexer.next().line, 5u);
}

TEST(Lexer, UnfinishedCommentAndString) {
  EXPECT_EQ(Lexer("/* a").next().kind, Kind::kBad);
  EXPECT_EQ(Lexer("/*").next().kind, Kind::kBad);
  EXPECT_EQ(Lexer("\"abc\n\"").next().kind, Kind::kBad);
  EXPECT_EQ(Lexer("\"abc\\").next().kind, Kind::kBad);
  EXPECT_EQ(Lexer("`").next().kind, Kind::kBad);
  EXPECT_EQ(Lexer(std::string_view("\0", 1)).next().kind, Kind::kBad);
  EXPECT_TRUE(Lexer("/").next().is('/'));
}

}  // namespace
}  // namespace kv::simt::ptx
