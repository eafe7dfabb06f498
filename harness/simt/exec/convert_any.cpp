#include "harness/simt/exec/convert_any.h"

#include "harness/simt/exec/math/float.h"
#include "harness/simt/exec/math/round.h"

namespace kv::simt {
namespace {

using namespace KV_ISA;
using ptx::Type;
using Wide = __int128;

struct Kind {
  uint8_t bits = 0;  // of an integer
  bool is_signed = false;
  bool is_float = false;
  uint8_t halves = 1;  // elements in the register
  Type element = Type::kNone;
};

Kind kind_of(Type t) {
  switch (t) {
    case Type::kU8:
      return {8, false};
    case Type::kS8:
      return {8, true};
    case Type::kU16:
      return {16, false};
    case Type::kS16:
      return {16, true};
    case Type::kU32:
      return {32, false};
    case Type::kS32:
      return {32, true};
    case Type::kU64:
      return {64, false};
    case Type::kS64:
      return {64, true};
    case Type::kF16:
    case Type::kBf16:
    case Type::kTf32:
    case Type::kF32:
    case Type::kF64:
      return {0, false, true, 1, t};
    case Type::kF16x2:
      return {0, false, true, 2, Type::kF16};
    case Type::kBf16x2:
      return {0, false, true, 2, Type::kBf16};
    case Type::kE4m3x2:
      return {0, false, true, 2, Type::kE4m3};
    case Type::kE5m2x2:
      return {0, false, true, 2, Type::kE5m2};
    default:
      return {};
  }
}

uint32_t element_bits(Type t) {
  switch (t) {
    case Type::kF64:
      return 64;
    case Type::kF32:
    case Type::kTf32:
      return 32;
    case Type::kE4m3:
    case Type::kE5m2:
      return 8;
    default:
      return 16;
  }
}

Wide integer_value(const Kind& k, uint64_t raw) {
  const uint64_t mask = k.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << k.bits) - 1;
  const uint64_t u = raw & mask;
  const bool negative = k.is_signed && (u >> (k.bits - 1) & 1);
  return negative ? Wide(u) - (Wide(1) << k.bits) : Wide(u);
}

Wide clamped(const Kind& k, Wide v) {
  const Wide low = k.is_signed ? -(Wide(1) << (k.bits - 1)) : 0;
  const Wide high = (Wide(1) << (k.bits - (k.is_signed ? 1 : 0))) - 1;
  return v < low ? low : v > high ? high : v;
}

double float_value(Type t, uint64_t raw, bool ftz) {
  switch (t) {
    case Type::kF64:
      return double_of(raw);
    case Type::kF16:
      return half_value(uint32_t(raw) & 0xffff);
    case Type::kBf16:
      return bfloat_value(uint32_t(raw) & 0xffff);
    case Type::kE5m2:
      return half_value((uint32_t(raw) & 255) << 8);
    case Type::kE4m3:
      return e4m3_number(uint32_t(raw) & 255);
    default:
      return float_of(ftz ? flush(uint32_t(raw)) : uint32_t(raw));
  }
}

Round round_of(uint16_t flags) { return Round(flags & convert_flags::kRoundMask & 3); }

double integral(double x, uint16_t flags) { return to_integral_value(x, round_of(flags)); }

/// A float, exact in `x` or rounded to odd, to the element type.
uint64_t encode(Type t, double x, uint16_t flags) {
  using namespace convert_flags;
  if (!(x == x)) {
    if (flags & kSat) return 0;
    switch (t) {
      case Type::kF64:
        return kNanBits64;
      case Type::kF16:
      case Type::kBf16:
        return 0x7fff;
      case Type::kE4m3:
      case Type::kE5m2:
        return 0x7f;
      default:
        return kNanBits;
    }
  }
  if ((flags & kRelu) && x <= 0) x = 0;
  if (flags & kSat) x = x > 1 ? 1 : x > 0 ? x : 0;
  const Round mode = round_of(flags);
  const bool infinite = (bits_of(x) << 1 >> 53) == 0x7ff;
  switch (t) {
    case Type::kF64:
      return bits_of(x);
    case Type::kF16: {
      const uint32_t h = double_to_half(x, mode);
      return (flags & kFinite) && (h & 0x7fff) == 0x7c00 ? (h & 0x8000) | 0x7bff : h;
    }
    case Type::kBf16: {
      const uint32_t h = double_to_bfloat(x, mode);
      return (flags & kFinite) && (h & 0x7fff) == 0x7f80 ? (h & 0x8000) | 0x7f7f : h;
    }
    case Type::kE4m3: {
      const uint64_t m = infinite ? 0x7e : round_to_format(x, 3, -6, mode);
      return (m > 0x7e ? 0x7e : m) | (bits_of(x) >> 63) << 7;
    }
    case Type::kE5m2: {
      const uint64_t m = infinite ? 0x7b : round_to_format(x, 2, -14, mode);
      return (m > 0x7b ? 0x7b : m) | (bits_of(x) >> 63) << 7;
    }
    case Type::kTf32: {
      const uint32_t u = bits_of(float(x));  // tf32 comes from f32: exact
      if ((u & 0x7f800000) == 0x7f800000) {
        return (flags & kFinite) ? (u & 0x80000000) | 0x7f7fe000 : u;
      }
      uint32_t add = 0;
      if ((flags & kRoundMask) == 4) add = 0x1000;
      if ((flags & kRoundMask) == 0) add = 0xfff + (u >> 13 & 1);
      const uint32_t r = (u + add) & 0xffffe000;
      return (flags & kFinite) && (r & 0x7fffffff) == 0x7f800000 ? (r & 0x80000000) | 0x7f7fe000
                                                                 : r;
    }
    default: {
      const uint32_t u = bits_of(round_to_float(x, mode));
      return flags & kFtz ? flush(u) : u;
    }
  }
}

uint64_t float_to_integer(const Kind& to, Type from, double x, uint16_t flags) {
  const bool wide = to.bits == 64 || from == Type::kF64;
  if (!(x == x)) return wide ? uint64_t{1} << (to.bits - 1) : 0;
  const double r = integral(x, flags);
  if (r >= 0x1p100) return uint64_t(clamped(to, Wide(1) << 100));
  if (r <= -0x1p100) return uint64_t(clamped(to, -(Wide(1) << 100)));
  return uint64_t(clamped(to, Wide(r)));
}

/// An integer as a double that rounds to any narrower format as the integer would.
double odd_integer(Wide v) {
  const bool negative = v < 0;
  unsigned __int128 m = negative ? (unsigned __int128)(-v) : (unsigned __int128)(v);
  if (m == 0) return 0;
  int shift = 0;
  bool lost = false;
  while (m >> 53) {
    lost |= m & 1;
    m >>= 1;
    ++shift;
  }
  if (lost) m |= 1;
  double x = double(uint64_t(m));
  for (; shift > 0; --shift) x *= 2;
  return negative ? -x : x;
}

uint64_t one(const Kind& to, Type to_type, const Kind& from, Type from_type, uint64_t raw,
             uint16_t flags) {
  using namespace convert_flags;
  if (!from.is_float) {
    const Wide v = integer_value(from, raw);
    if (!to.is_float) {
      const Wide r = flags & kSat ? clamped(to, v) : v;
      return uint64_t(integer_value(to, uint64_t(r)));
    }
    if (to_type == Type::kF64) return bits_of(integer_to_double(v, round_of(flags)));
    return encode(to.element, odd_integer(v), flags);
  }
  double x = float_value(from_type, raw, flags & kFtz);
  if (!to.is_float) {
    return uint64_t(integer_value(to, float_to_integer(to, from_type, x, flags)));
  }
  if (flags & kIntegral) x = integral(x, flags);
  return encode(to.element, x, flags);
}

void write(Warp& w, const Ins* i, uint32_t lane, uint64_t value) {
  if (i->width == 8) {
    slot<uint64_t>(w, i->r[0])[lane] = value;
  } else {
    const uint32_t mask = i->width == 2 ? 0xffff : ~0u;
    slot<uint32_t>(w, i->r[0])[lane] = uint32_t(value) & mask;
  }
}

uint64_t read(Warp& w, const Ins* i, uint32_t operand, uint32_t lane) {
  if (i->count == 8) return slot<uint64_t>(w, i->r[operand])[lane];
  return slot<uint32_t>(w, i->r[operand])[lane];
}

}  // namespace

bool convertible(Type to, Type from) {
  const Kind a = kind_of(to), b = kind_of(from);
  return (a.bits || a.is_float) && (b.bits || b.is_float) &&
         (a.halves == b.halves || a.halves == 2);
}

const Ins* convert_any(Warp& w, const Ins* i) {
  const auto to_type = Type(i->mode), from_type = Type(i->extra);
  const Kind to = kind_of(to_type), from = kind_of(from_type);
  for (uint32_t mask = w.exec; mask; mask &= mask - 1) {
    const auto lane = uint32_t(__builtin_ctz(mask));
    if (to.halves == 1) {
      write(w, i, lane, one(to, to_type, from, from_type, read(w, i, 1, lane), i->flags));
      continue;
    }
    // Two results: of two registers (the first gives the upper half), or of the halves of one.
    const uint32_t bits = element_bits(to.element);
    uint64_t value = 0;
    for (uint32_t half = 0; half < 2; ++half) {
      const uint64_t raw = from.halves == 2
                               ? read(w, i, 1, lane) >> (half * element_bits(from.element))
                               : read(w, i, 2 - half, lane);
      const Type element = from.halves == 2 ? from.element : from_type;
      Kind narrow = from;
      narrow.halves = 1;
      value |= one(to, to_type, narrow, element, raw, i->flags) << (half * bits);
    }
    write(w, i, lane, value);
  }
  KV_NEXT(w, i + 1);
}

}  // namespace kv::simt
