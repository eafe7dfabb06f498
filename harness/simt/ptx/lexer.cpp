#include "harness/simt/ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace kv::simt::ptx {
namespace {

enum : uint8_t { kBlank = 1, kWordStart = 2, kWordPart = 4, kDigit = 8 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (char c : std::string_view(" \t\r\n\v\f")) classes[uint8_t(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kWordStart | kWordPart;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kWordStart | kWordPart;
  for (char c : std::string_view("_$.")) classes[uint8_t(c)] = kWordStart | kWordPart;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit | kWordPart;
  classes['%'] = kWordStart;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool has_class(char c, uint8_t wanted) { return (kClasses[uint8_t(c)] & wanted) != 0; }

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

Token Lexer::make(Token::Kind kind, const char* begin, uint64_t value) {
  return {kind, line_, std::string_view(begin, size_t(cursor_ - begin)), value};
}

Token Lexer::bad(const char* begin, std::string_view complaint) {
  complaint_ = complaint;
  Token token = make(Token::Kind::kBad, begin);
  cursor_ = begin;  // so that it is returned again
  return token;
}

/// Skips a comment at the cursor; false if a block comment does not end.
bool Lexer::skip_comment() {
  if (cursor_[1] == '/') {
    const void* eol = std::memchr(cursor_, '\n', size_t(end_ - cursor_));
    cursor_ = eol ? static_cast<const char*>(eol) : end_;
    return true;
  }
  for (const char* p = cursor_ + 2; p + 1 < end_; ++p) {
    if (*p == '\n') ++line_;
    if (p[0] == '*' && p[1] == '/') {
      cursor_ = p + 2;
      return true;
    }
  }
  return false;
}

bool Lexer::skip_blank() {
  while (cursor_ < end_) {
    if (has_class(*cursor_, kBlank)) {
      line_ += *cursor_ == '\n';
      ++cursor_;
    } else if (*cursor_ == '/' && end_ - cursor_ > 1 && (cursor_[1] == '/' || cursor_[1] == '*')) {
      if (!skip_comment()) return false;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::next() {
  if (!skip_blank()) {
    const char* begin = cursor_;
    cursor_ = begin + 2;
    return bad(begin, "a comment that does not end");
  }
  if (cursor_ == end_) return {Token::Kind::kEnd, line_, "end of text", 0};
  const char c = *cursor_;
  if (has_class(c, kDigit)) return number();
  if (c == '.' && end_ - cursor_ > 1 && has_class(cursor_[1], kDigit)) return decimal();
  if (has_class(c, kWordStart)) return word();
  if (c == '"') return string();
  const char* begin = cursor_++;
  if (std::strchr("{}[]()<>,;:+-*/|&^~!@=", c) == nullptr || c == '\0') {
    return bad(begin, "an unexpected character");
  }
  return make(Token::Kind::kPunct, begin);
}

Token Lexer::word() {
  const char* begin = cursor_++;
  while (true) {
    while (cursor_ < end_ && has_class(*cursor_, kWordPart)) ++cursor_;
    const bool joined = end_ - cursor_ > 2 && cursor_[0] == ':' && cursor_[1] == ':' &&
                        has_class(cursor_[2], kWordPart);
    if (!joined) break;
    cursor_ += 2;
  }
  return make(Token::Kind::kWord, begin);
}

Token Lexer::string() {
  const char* begin = cursor_;
  for (const char* p = begin + 1; p < end_ && *p != '\n'; ++p) {
    if (*p == '\\' && end_ - p > 1) {
      ++p;
    } else if (*p == '"') {
      cursor_ = p + 1;
      return {Token::Kind::kString, line_, std::string_view(begin + 1, size_t(p - begin - 1)), 0};
    }
  }
  cursor_ = begin + 1;
  return bad(begin, "a string that does not end");
}

Token Lexer::number() {
  if (*cursor_ != '0' || end_ - cursor_ < 2) return decimal();
  switch (cursor_[1]) {
    case 'f':
    case 'F':
      return float_bits(8, Token::Kind::kFloat32);
    case 'd':
    case 'D':
      return float_bits(16, Token::Kind::kFloat64);
    case 'x':
    case 'X':
      return radix(16, cursor_ + 2);
    case 'b':
    case 'B':
      return radix(2, cursor_ + 2);
    default:
      return has_class(cursor_[1], kDigit) ? radix(8, cursor_ + 1) : decimal();
  }
}

Token Lexer::float_bits(int digits, Token::Kind kind) {
  const char* begin = cursor_;
  cursor_ += 2;
  uint64_t bits = 0;
  int seen = 0;
  for (; cursor_ < end_ && digit_value(*cursor_) < 16; ++cursor_, ++seen) {
    bits = bits << 4 | uint64_t(digit_value(*cursor_));
  }
  if (seen != digits) return bad(begin, "a floating-point constant with the wrong digit count");
  return make(kind, begin, bits);
}

Token Lexer::radix(int base, const char* digits) {
  const char* begin = cursor_;
  uint64_t value = 0;
  for (cursor_ = digits; cursor_ < end_ && digit_value(*cursor_) < base; ++cursor_) {
    if (value > UINT64_MAX / uint64_t(base)) return bad(begin, "a number beyond 64 bits");
    value = value * uint64_t(base) + uint64_t(digit_value(*cursor_));
  }
  if (cursor_ == digits) return bad(begin, "a number without digits");
  if (cursor_ < end_ && (*cursor_ == 'U' || *cursor_ == 'u')) ++cursor_;
  if (cursor_ < end_ && has_class(*cursor_, kWordPart)) return bad(begin, "a malformed number");
  return make(Token::Kind::kInteger, begin, value);
}

Token Lexer::decimal() {
  const char* begin = cursor_;
  const char* last = begin;
  while (last < end_ && has_class(*last, kDigit)) ++last;
  if (last == end_ || (*last != '.' && *last != 'e' && *last != 'E')) {
    uint64_t value = 0;
    const auto parsed = std::from_chars(begin, last, value);
    cursor_ = last;
    if (parsed.ec != std::errc()) return bad(begin, "a number beyond 64 bits");
    if (cursor_ < end_ && (*cursor_ == 'U' || *cursor_ == 'u')) ++cursor_;
    if (cursor_ < end_ && has_class(*cursor_, kWordPart)) return bad(begin, "a malformed number");
    return make(Token::Kind::kInteger, begin, value);
  }
  double value = 0;
  const auto parsed = std::from_chars(begin, end_, value);
  cursor_ = parsed.ptr > begin ? parsed.ptr : last;
  if (parsed.ec != std::errc()) return bad(begin, "a floating-point constant out of range");
  if (cursor_ < end_ && has_class(*cursor_, kWordPart)) return bad(begin, "a malformed number");
  return make(Token::Kind::kFloat64, begin, std::bit_cast<uint64_t>(value));
}

}  // namespace kv::simt::ptx
