// Where code comes from (.file, .loc) and what the compiler adds (.pragma).
#include <cstring>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

uint64_t position_key(uint64_t file, uint64_t line, uint64_t column) {
  return file << 48 | line << 16 | (column & 0xffff);
}

}  // namespace

/// `.file 1 "name" [, timestamp, size]`: read by scan_file_table, checked here.
bool Parser::file() {
  advance();
  uint64_t ignored = 0;
  std::string_view name;
  if (!expect_integer(Limits::kFiles, "a file number", &ignored)) return false;
  if (!expect_string(&name)) return false;
  while (accept(',')) {
    if (!expect_integer(UINT64_MAX, "a number", &ignored)) return false;
  }
  return true;
}

/// nvcc writes the file table after the code that refers to it, so it is looked for first.
void Parser::scan_file_table() {
  constexpr std::string_view kWord = ".file";
  const std::string& text = module_.text;
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  while (at < end) {
    at = static_cast<const char*>(memmem(at, size_t(end - at), kWord.data(), kWord.size()));
    if (!at) return;
    size_t before = size_t(at - text.data());
    while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '\t')) --before;
    at += kWord.size();
    if (before > 0 && text[before - 1] != '\n') continue;
    Lexer lexer(std::string_view(at, size_t(end - at)));
    const Token number = lexer.next();
    if (number.kind != Token::Kind::kInteger || number.value > Limits::kFiles) continue;
    const Token name = lexer.next();
    if (name.kind != Token::Kind::kString) continue;
    if (module_.files.size() <= number.value) module_.files.resize(number.value + 1);
    module_.files[number.value] = std::string(name.text);
  }
}

std::string_view Parser::file_name(uint64_t index) const {
  return index < module_.files.size() ? std::string_view(module_.files[index]) : "";
}

/// `.loc file line column [, function_name label [+ offset], inlined_at file line column]`.
/// Source: PTX ISA 9.0 section 11.5.3.
bool Parser::location() {
  advance();
  uint64_t file = 0, line = 0, column = 0;
  if (!expect_integer(Limits::kFiles, "a file number", &file) ||
      !expect_integer(UINT32_MAX, "a line number", &line) ||
      !expect_integer(UINT32_MAX, "a column", &column)) {
    return false;
  }
  where_ = {file_name(file), uint32_t(line), {}, 0};
  const uint64_t position = position_key(file, line, column);
  bool inlined = false;
  while (accept(',')) {
    std::string_view name;
    uint64_t offset = 0;
    if (accept_word("function_name")) {
      if (!expect_name("a label", &name)) return false;
      if (accept('+') && !expect_integer(UINT32_MAX, "an offset", &offset)) return false;
    } else if (accept_word("inlined_at")) {
      if (!inlined_at(position)) return false;
      inlined = true;
    } else {
      return fail("'function_name' or 'inlined_at'");
    }
  }
  if (!inlined) inlined_positions_.erase(position);
  return true;
}

/// nvcc names the chain of inlining sites outermost first, each by a .loc of its own, so the last
/// .loc of the site's position knows whether the site itself was inlined.
bool Parser::inlined_at(uint64_t position) {
  uint64_t file = 0, line = 0, column = 0;
  if (!expect_integer(Limits::kFiles, "a file number", &file) ||
      !expect_integer(UINT32_MAX, "a line number", &line) ||
      !expect_integer(UINT32_MAX, "a column", &column)) {
    return false;
  }
  std::pair<std::string_view, uint32_t> outermost{file_name(file), uint32_t(line)};
  const auto site = inlined_positions_.find(position_key(file, line, column));
  if (site != inlined_positions_.end()) outermost = site->second;
  where_.inlined_at_file = outermost.first;
  where_.inlined_at_line = outermost.second;
  inlined_positions_[position] = outermost;
  return true;
}

/// `.pragma "used_bytes_mask 0xff";` tells which bytes of the next load matter; others do not
/// change what the code means.
bool Parser::pragma() {
  advance();
  do {
    const Token at = token_;
    std::string_view text;
    if (!expect_string(&text)) return false;
    constexpr std::string_view kUsedBytes = "used_bytes_mask";
    if (!text.starts_with(kUsedBytes)) continue;
    Lexer lexer(text.substr(kUsedBytes.size()));
    const Token mask = lexer.next();
    if (mask.kind != Token::Kind::kInteger || mask.value > UINT32_MAX) {
      return fail_at(at, "used_bytes_mask with a 32-bit number");
    }
    used_bytes_mask_ = uint32_t(mask.value);
  } while (accept(','));
  return expect(';');
}

}  // namespace kv::simt::ptx
