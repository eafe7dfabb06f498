#include "harness/simt/exec/taint_rules.h"

#include <algorithm>

namespace kv::simt {
namespace {

using Bits = uint64_t;

/// Everything from the lowest undefined bit upwards: what a carry can reach.
Bits upwards(Bits u) { return u | (0 - u); }

Bits all_or_nothing(Bits u) { return u ? ~Bits{0} : 0; }

/// One lane. u: undefined bits, v: values of the sources.
Bits one_lane(const TaintRule& rule, const Bits* u, const Bits* v, uint32_t sources) {
  const Meta& m = *rule.meta;
  const uint32_t width = m.source_bits;
  const Bits low = width >= 64 ? ~Bits{0} : (Bits{1} << width) - 1;
  const bool wide = m.destinations && m.classes[0] == '4';
  const uint32_t limit = width == 16 ? 16 : wide ? 64 : 32;
  Bits any = 0;
  for (uint32_t k = 0; k < sources; ++k) any |= u[k];
  switch (m.taint) {
    case Taint::kNone:
      return 0;
    case Taint::kCopy:
      return u[0] & low;
    case Taint::kSignCopy:
      return (u[0] & low) | (u[0] >> (width - 1) & 1 ? ~low : 0);
    case Taint::kAnd:
      return (u[0] & u[1]) | (u[0] & v[1]) | (u[1] & v[0]);
    case Taint::kOr:
      return (u[0] & u[1]) | (u[0] & ~v[1]) | (u[1] & ~v[0]);
    case Taint::kXor:
      return any;
    case Taint::kAdd:
      return upwards(any);
    case Taint::kShl:
      if (u[1]) return ~Bits{0};
      return v[1] >= limit ? 0 : u[0] << v[1];
    case Taint::kShr:
      if (u[1]) return ~Bits{0};
      return v[1] >= limit ? 0 : u[0] >> v[1];
    case Taint::kSar: {
      if (u[1]) return ~Bits{0};
      const Bits sign = u[0] >> (limit - 1) & 1 ? ~Bits{0} << (limit - 1) : 0;
      return Bits(int64_t(u[0] | sign) >> std::min<Bits>(v[1], limit - 1));
    }
    case Taint::kSelect:
      if (u[2]) return u[0] | u[1] | (v[0] ^ v[1]);
      return v[2] & 1 ? u[0] : u[1];
    case Taint::kHalves:
      return (any & 0xffff ? 0xffff : 0) | (any & 0xffff0000 ? 0xffff0000 : 0);
    case Taint::kPermute: {
      if (u[2]) return ~Bits{0};
      const Bits bytes = (u[0] & 0xffffffff) | u[1] << 32;
      Bits result = 0;
      for (int k = 0; k < 4; ++k) {
        const Bits pick = v[2] >> (4 * k) & 15;
        const Bits byte = bytes >> (8 * (pick & 7)) & 255;
        result |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * k);
      }
      return result;
    }
    case Taint::kPack: {
      Bits result = 0;
      for (uint32_t k = 0; k < sources; ++k) result |= (u[k] & low) << (width * k);
      return result;
    }
    case Taint::kPredicateAnd:
      return ((u[0] && (u[1] || v[1])) || (u[1] && v[0])) ? 1 : 0;
    case Taint::kPredicateOr:
      if (sources == 1) return u[0];
      return ((u[0] && (u[1] || !v[1])) || (u[1] && !v[0])) ? 1 : 0;
    default:
      return all_or_nothing(any);
  }
}

/// Lanes of other lanes: the source lane that shfl reads, as its handler computes it.
void shuffle(TaintRule& rule) {
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t b = uint32_t(rule.value[1][l]) & 31, c = uint32_t(rule.value[2][l]);
    const uint32_t segment = c >> 8 & 31, clamp = c & 31;
    const uint32_t high = (l & segment) | (clamp & ~segment), low = l & segment;
    int from = int(l);
    bool inside = false;
    switch (rule.ins->mode) {
      case 0:
        from = int(l ^ b), inside = from <= int(high);
        break;
      case 1:
        from = int(low | (b & ~segment)), inside = from <= int(high);
        break;
      case 2:
        from = int(l + b), inside = from <= int(high);
        break;
      default:
        from = int(l) - int(b), inside = from >= int(high);
        break;
    }
    const bool lost = rule.undefined[1][l] || rule.undefined[2][l];
    rule.result[0][l] = lost ? ~Bits{0} : rule.undefined[0][inside ? from & 31 : int(l)];
  }
}

/// mma: element (row, column) depends on row `row` of A, column `column` of B and itself in C. The
/// fragment layouts of m16n8kX and m8n8kX: lane = 4 * row-of-eight + pair; see isa/matrix.cpp.
void matrix(TaintRule& rule) {
  const uint32_t a_regs = rule.ins->count, b_regs = rule.ins->width;
  const uint32_t c_regs = rule.meta->sources - a_regs - b_regs;
  const bool tall = a_regs == 2 * b_regs;  // sixteen rows, not eight
  uint32_t rows = 0, columns = 0;          // undefined rows of A, columns of B
  for (uint32_t k = 0; k < a_regs; ++k) {
    for (uint32_t l = 0; l < 32; ++l) {
      if (rule.undefined[k][l]) rows |= 1u << (l / 4 + (tall ? 8 * (k & 1) : 0));
    }
  }
  for (uint32_t k = 0; k < b_regs; ++k) {
    for (uint32_t l = 0; l < 32; ++l) {
      if (rule.undefined[a_regs + k][l]) columns |= 1u << (l / 4);
    }
  }
  for (uint32_t k = 0; k < rule.meta->destinations; ++k) {
    for (uint32_t l = 0; l < 32; ++l) {
      const bool packed = c_regs == 2 && tall;  // two f16 in a register
      const uint32_t row = l / 4 + 8 * (packed ? k & 1 : k >> 1);
      const uint32_t first = 2 * (l & 3) + (packed ? 0 : k & 1);
      const uint32_t wanted = packed ? 3u << first : 1u << first;
      const bool lost =
          (rows >> row & 1) || (columns & wanted) || rule.undefined[a_regs + b_regs + k][l];
      rule.result[k][l] = lost ? ~Bits{0} : 0;
    }
  }
}

/// movmatrix: lane l holds elements (l/4, 2*(l%4)) and its neighbour; the result is transposed.
void matrix_move(TaintRule& rule) {
  for (uint32_t l = 0; l < 32; ++l) {
    Bits result = 0;
    for (uint32_t h = 0; h < 2; ++h) {
      const uint32_t row = 2 * (l & 3) + h, column = l / 4;
      const Bits u = rule.undefined[0][row * 4 + column / 2] >> (16 * (column & 1)) & 0xffff;
      result |= u << (16 * h);
    }
    rule.result[0][l] = result;
  }
}

}  // namespace

void apply_taint_rule(TaintRule& rule) {
  const Meta& m = *rule.meta;
  if (m.taint == Taint::kShuffle) return shuffle(rule);
  if (m.taint == Taint::kMatrix) return matrix(rule);
  if (m.taint == Taint::kMatrixMove) return matrix_move(rule);
  const uint32_t sources = std::min<uint32_t>(m.sources, 10);
  for (uint32_t l = 0; l < 32; ++l) {
    Bits u[10], v[10];
    for (uint32_t k = 0; k < sources; ++k) {
      u[k] = rule.undefined[k][l];
      v[k] = rule.value[k][l];
    }
    if (m.taint == Taint::kUnpack) {
      const uint32_t width = m.source_bits;
      for (uint32_t k = 0; k < m.destinations; ++k) {
        const Bits low = width >= 64 ? ~Bits{0} : (Bits{1} << width) - 1;
        rule.result[k][l] = u[0] >> (width * k) & low;
      }
      continue;
    }
    const Bits result = one_lane(rule, u, v, sources);
    for (uint32_t k = 0; k < m.destinations; ++k) rule.result[k][l] = result;
  }
}

}  // namespace kv::simt
