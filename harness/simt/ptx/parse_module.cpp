#include <cstring>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text.substr(0, 64)) shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 64 ? shown + "..." : shown;
}

uint64_t position_key(uint64_t file, uint64_t line, uint64_t column) {
  return file << 48 | line << 16 | (column & 0xffff);
}

}  // namespace

Result<std::unique_ptr<Module>> parse_module(std::string text) {
  if (text.size() > Limits::kTextBytes) {
    return bad_input("PTX text of " + std::to_string(text.size()) + " bytes, limit " +
                     std::to_string(Limits::kTextBytes));
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  KV_RETURN_IF_ERROR(Parser(*module).run());
  return module;
}

bool Parser::fail_at(const Token& token, std::string_view expected) {
  if (error_) return false;
  std::string message = "PTX line " + std::to_string(token.line) + ": expected ";
  message.append(expected).append(", got ");
  if (token.kind == Token::Kind::kBad) message.append(lexer_.complaint()).append(" ");
  if (token.kind == Token::Kind::kEnd) {
    message.append("the end of the text");
  } else {
    message.append("'").append(printable(token.text)).append("'");
  }
  error_ = bad_input(std::move(message));
  return false;
}

bool Parser::refuse(const Token& token, std::string_view what) {
  if (!error_) {
    error_ = unsupported("PTX line " + std::to_string(token.line) + ": '" + printable(token.text) +
                         "': " + std::string(what));
  }
  return false;
}

bool Parser::accept(char punct) {
  if (!token_.is(punct)) return false;
  advance();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!token_.is_word(word)) return false;
  advance();
  return true;
}

bool Parser::expect(char punct) {
  if (accept(punct)) return true;
  const char quoted[] = {'\'', punct, '\''};
  return fail(std::string_view(quoted, 3));
}

bool Parser::expect_integer(uint64_t limit, std::string_view what, uint64_t* value) {
  if (token_.kind != Token::Kind::kInteger || token_.value > limit) {
    return fail(std::string(what) + " of at most " + std::to_string(limit));
  }
  *value = token_.value;
  advance();
  return true;
}

bool Parser::expect_name(std::string_view what, std::string_view* name) {
  if (!token_.is_word() || token_.is_directive()) return fail(what);
  *name = token_.text;
  advance();
  return true;
}

bool Parser::expect_string(std::string_view* text) {
  if (token_.kind != Token::Kind::kString) return fail("a string in quotes");
  *text = token_.text;
  advance();
  return true;
}

Result<void> Parser::run() {
  scan_file_table();
  if (!version() || !target()) return *error_;
  while (token_.kind != Token::Kind::kEnd) {
    if (!module_item()) return *error_;
  }
  return {};
}

bool Parser::version() {
  if (!accept_word(".version")) return fail("'.version' at the beginning");
  const std::string_view text = token_.text;
  const size_t dot = text.find('.');
  if (token_.kind != Token::Kind::kFloat64 || dot == 0 || dot > 3 || text.size() > dot + 3 ||
      text.find_first_not_of("0123456789.") != text.npos) {
    return fail("a version such as 9.0");
  }
  for (char c : text.substr(0, dot)) module_.isa_major = module_.isa_major * 10 + uint32_t(c - '0');
  for (char c : text.substr(dot + 1))
    module_.isa_minor = module_.isa_minor * 10 + uint32_t(c - '0');
  advance();
  return true;
}

bool Parser::target() {
  if (!accept_word(".target")) return fail("'.target' after the version");
  do {
    std::string_view name;
    const Token at = token_;
    if (!expect_name("a target such as sm_80", &name)) return false;
    if (!name.starts_with("sm_")) continue;
    uint32_t sm = 0;
    for (char c : name.substr(3, 4)) {
      if (c >= '0' && c <= '9') sm = sm * 10 + uint32_t(c - '0');
    }
    if (sm == 0) return fail_at(at, "a target such as sm_80");
    module_.target_sm = sm;
  } while (accept(','));
  if (module_.target_sm == 0) return fail("a target such as sm_80");
  return true;
}

bool Parser::module_item() {
  if (accept(';')) return true;
  if (!token_.is_directive()) return fail("a directive");
  if (accept_word(".address_size")) {
    const Token at = token_;
    uint64_t bits = 0;
    if (!expect_integer(64, "an address size", &bits)) return false;
    return bits == 64 || refuse(at, "only 64-bit addresses");
  }
  if (token_.is_word(".file")) return file();
  if (token_.is_word(".section")) return section();
  if (token_.is_word(".loc")) return location();
  if (token_.is_word(".pragma")) return pragma();
  if (token_.is_word(".alias")) return refuse(token_, "function aliases are not supported");
  return linkage_item();
}

/// Functions and variables, after `.visible`, `.weak`, `.extern`, `.common`.
bool Parser::linkage_item() {
  DeclarationHead head;
  while (true) {
    if (accept_word(".extern")) {
      head.is_extern = true;
    } else if (!accept_word(".visible") && !accept_word(".weak") && !accept_word(".common")) {
      break;
    }
  }
  if (accept_word(".entry")) return function_item(true);
  if (accept_word(".func")) return function_item(false);
  const Token at = token_;
  if (!declaration_head(&head)) return false;
  if (head.space == Space::kLocal || head.space == Space::kParam || head.space == Space::kReg) {
    return fail_at(at, "'.global', '.const', '.shared', '.entry' or '.func'");
  }
  return variables(head, &module_.variables);
}

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

/// `.section .debug_str { ... }`: debug information, skipped.
bool Parser::section() {
  advance();
  std::string_view name = token_.text;
  if (!token_.is_word()) return fail("a section name");
  advance();
  if (!expect('{')) return false;
  while (!token_.is('}')) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kBad) {
      return fail("'}' at the end of section " + printable(name));
    }
    advance();
  }
  advance();
  return true;
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
