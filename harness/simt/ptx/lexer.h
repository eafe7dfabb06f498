// Purpose: PTX text to tokens, without copying: a token is a view into the text.
// Contract: the text outlives the lexer. After kEnd or kBad, next() keeps returning the same token.
// A word takes its dots and double colons with it: "mma.sync.aligned", "%tid.x", "L2::128B",
// ".reg". Comments are skipped. Source: PTX ISA 9.0, sections 4.2 to 4.5.
#pragma once

#include <cstdint>
#include <string_view>

namespace kv::simt::ptx {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kWord,     // identifier, register, opcode or directive
    kInteger,  // value: 64 bits
    kFloat32,  // value: the 32 bits of 0f...
    kFloat64,  // value: the 64 bits of 0d... or of a decimal constant
    kString,   // text without the quotes
    kPunct,    // text of one character
    kBad,      // text: the offending characters; see Lexer::complaint
  };
  Kind kind = Kind::kEnd;
  uint32_t line = 1;  // 1-based
  std::string_view text;
  uint64_t value = 0;

  bool is(char punct) const { return kind == Kind::kPunct && text[0] == punct; }
  bool is_word() const { return kind == Kind::kWord; }
  bool is_word(std::string_view word) const { return kind == Kind::kWord && text == word; }
  bool is_directive() const { return kind == Kind::kWord && text[0] == '.'; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : cursor_(text.data()), end_(text.data() + text.size()) {}

  Token next();
  /// What is wrong with a kBad token.
  std::string_view complaint() const { return complaint_; }

 private:
  bool skip_blank();
  bool skip_comment();
  Token word();
  Token number();
  Token float_bits(int digits, Token::Kind kind);
  Token radix(int base, const char* digits);
  Token decimal();
  Token string();
  Token make(Token::Kind kind, const char* begin, uint64_t value = 0);
  Token bad(const char* begin, std::string_view complaint);

  const char* cursor_;
  const char* end_;
  uint32_t line_ = 1;
  std::string_view complaint_;
};

}  // namespace kv::simt::ptx
