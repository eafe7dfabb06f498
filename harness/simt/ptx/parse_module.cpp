#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text.substr(0, 64)) shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 64 ? shown + "..." : shown;
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

}  // namespace kv::simt::ptx
