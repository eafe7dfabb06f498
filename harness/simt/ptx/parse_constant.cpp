// Constant expressions, PTX ISA 9.0 section 4.5: integers with the operators of C, floats alone or
// with a sign.
#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

using Immediate = Operand::ImmediateKind;

/// Binding strength of a binary operator, -1 if the token is none. Relational, logical and
/// conditional operators, and `%`, were never met in compiler output. `<` stands for `<<`.
int operator_level(const Token& token) {
  if (token.kind != Token::Kind::kPunct) return -1;
  switch (token.text[0]) {
    case '|':
      return 0;
    case '^':
      return 1;
    case '&':
      return 2;
    case '<':
    case '>':
      return 3;
    case '+':
    case '-':
      return 4;
    case '*':
    case '/':
      return 5;
    default:
      return -1;
  }
}

uint64_t divide(uint64_t a, uint64_t b) {
  if (int64_t(b) == -1) return 0 - a;  // INT64_MIN / -1 wraps
  return uint64_t(int64_t(a) / int64_t(b));
}

void negate(Constant* value) {
  if (value->kind == Immediate::kF32) {
    value->bits ^= uint64_t{1} << 31;
  } else if (value->kind == Immediate::kF64) {
    value->bits ^= uint64_t{1} << 63;
  } else {
    value->bits = 0 - value->bits;
  }
}

}  // namespace

bool Parser::constant(Constant* out, int depth) {
  return constant_unary(depth, out) && constant_tail(0, depth, out);
}

/// Precedence climbing: folds operators at least as strong as `level` into *left.
bool Parser::constant_tail(int level, int depth, Constant* left) {
  for (int found = operator_level(token_); found >= level; found = operator_level(token_)) {
    const Token op = token_;
    advance();
    if (found == 3 && !expect(op.text[0])) return false;
    Constant right;
    if (!constant_unary(depth, &right)) return false;
    if (operator_level(token_) > found && !constant_tail(found + 1, depth, &right)) return false;
    if (!combine(op.text[0], op, right, left)) return false;
  }
  return true;
}

bool Parser::constant_unary(int depth, Constant* out) {
  if (depth > Limits::kExpressionDepth) return fail("an expression nested less deeply");
  const Token at = token_;
  switch (at.kind) {
    case Token::Kind::kInteger:
      *out = {at.value, Immediate::kInteger};
      advance();
      return true;
    case Token::Kind::kFloat32:
      *out = {at.value, Immediate::kF32};
      advance();
      return true;
    case Token::Kind::kFloat64:
      *out = {at.value, Immediate::kF64};
      advance();
      return true;
    default:
      break;
  }
  if (accept('(')) return constant(out, depth + 1) && expect(')');
  if (accept_word("WARP_SZ")) {
    *out = {32, Immediate::kInteger};
    return true;
  }
  const bool is_sign = at.is('-') || at.is('+');
  if (!is_sign && !at.is('~') && !at.is('!')) return fail("a constant");
  advance();
  if (!constant_unary(depth + 1, out)) return false;
  if (at.is('-')) negate(out);
  if (is_sign) return true;
  if (out->kind != Immediate::kInteger) return fail_at(at, "a sign before a floating constant");
  out->bits = at.is('~') ? ~out->bits : uint64_t{out->bits == 0};
  return true;
}

bool Parser::combine(char op, const Token& at, Constant right, Constant* left) {
  if (left->kind != Immediate::kInteger || right.kind != Immediate::kInteger) {
    return fail_at(at, "no operator between floating constants");
  }
  uint64_t& a = left->bits;
  const uint64_t b = right.bits;
  const bool wide_shift = b > 63;
  switch (op) {
    case '|':
      a |= b;
      return true;
    case '^':
      a ^= b;
      return true;
    case '&':
      a &= b;
      return true;
    case '<':
      a = wide_shift ? 0 : a << b;
      return true;
    case '>':
      a = uint64_t(int64_t(a) >> (wide_shift ? 63 : b));
      return true;
    case '+':
      a += b;
      return true;
    case '-':
      a -= b;
      return true;
    case '*':
      a *= b;
      return true;
    default:
      if (b == 0) return fail_at(at, "a divisor other than zero");
      a = divide(a, b);
      return true;
  }
}

}  // namespace kv::simt::ptx
