// Integer arithmetic and comparison. PTX ISA 9.0 sections 9.7.1 and 9.7.6. A register of 8 or 16
// bits lives in a 32-bit lane, its upper bits zero.
#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

template <class A, class B>
constexpr A smaller(A a, B b) {
  return a < b ? a : b;
}
template <class A, class B>
constexpr A larger(A a, B b) {
  return a > b ? a : b;
}

KV_INLINE s32 clamp32(s64 x) {
  return s32(x > 0x7fffffffll ? 0x7fffffffll : x < -0x80000000ll ? -0x80000000ll : x);
}
KV_INLINE u64 high64(u64 a, u64 b) { return u64((unsigned __int128)(a)*b >> 64); }
KV_INLINE u64 high_signed64(u64 a, u64 b) { return u64((__int128)(s64(a)) * s64(b) >> 64); }

// Division by zero: the quotient is all ones and the remainder the dividend, as the hardware's
// sequence gives. INT_MIN / -1 wraps.
template <class U>
KV_INLINE U divide(U a, U b) {
  return b == 0 ? U(~U(0)) : U(a / b);
}
template <class U>
KV_INLINE U remainder(U a, U b) {
  return b == 0 ? a : U(a % b);
}
template <class S>
KV_INLINE S divide_signed(S a, S b) {
  if (b == 0) return S(-1);
  return b == -1 ? S(0 - u64(a)) : S(a / b);
}
template <class S>
KV_INLINE S remainder_signed(S a, S b) {
  if (b == 0) return a;
  return b == -1 ? S(0) : S(a % b);
}

KV_INLINE u32 reverse(u32 x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
KV_INLINE u64 reverse64(u64 x) { return u64(reverse(u32(x))) << 32 | reverse(u32(x >> 32)); }

template <class T, class U, int kBits>
KV_INLINE U extract_field(U a, u32 position, u32 length) {
  const u32 pos = position & 255, len = length & 255;
  if (len == 0) return 0;
  const u32 top = pos + len - 1 < kBits - 1 ? pos + len - 1 : kBits - 1;
  const bool negative = T(-1) < T(0) && (a >> top & 1);
  if (pos >= kBits) return negative ? U(~U(0)) : 0;
  const U kept = U(a >> pos);
  if (len >= kBits) return negative ? U(T(a) >> pos) : kept;
  const U mask = U((U(1) << len) - 1);
  const u32 valid = kBits - pos < len ? kBits - pos : len;
  const U valid_mask = valid >= kBits ? U(~U(0)) : U((U(1) << valid) - 1);
  const U field = kept & mask & valid_mask;
  return negative ? U(field | ~valid_mask) : field;
}

template <class U, int kBits>
KV_INLINE U insert_field(U a, U b, u32 position, u32 length) {
  const u32 pos = position & 255, len = length & 255;
  if (pos >= kBits || len == 0) return b;
  const U field = len >= kBits ? U(~U(0)) : U((U(1) << len) - 1);
  const U mask = U(field << pos);
  return (b & ~mask) | (U(a << pos) & mask);
}

KV_INLINE u32 permute(u32 a, u32 b, u32 c) {
  const u64 bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 pick = c >> (4 * k) & 15;
    u32 byte = u32(bytes >> (8 * (pick & 7))) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return result;
}
/// prmt with a mode: the selector is c & 3.
enum class PermuteMode { kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };
template <PermuteMode kMode>
KV_INLINE u32 permute_mode(u32 a, u32 b, u32 c) {
  constexpr u16 kTables[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
      {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
      {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return permute(a, b, kTables[int(kMode)][c & 3]);
}

template <bool kSignedA, bool kSignedB>
KV_INLINE u32 dot4(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 4; ++k) {
    const u32 x = a >> (8 * k) & 255, y = b >> (8 * k) & 255;
    c += u32((kSignedA ? s32(s8(x)) : s32(x)) * (kSignedB ? s32(s8(y)) : s32(y)));
  }
  return c;
}
template <bool kSignedA, bool kSignedB, int kShift>
KV_INLINE u32 dot2(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 2; ++k) {
    const u32 x = a >> (16 * k) & 0xffff, y = b >> (kShift + 8 * k) & 255;
    c += u32((kSignedA ? s32(s16(x)) : s32(x)) * (kSignedB ? s32(s8(y)) : s32(y)));
  }
  return c;
}

KV_INLINE u32 find_top(u32 a) { return a ? 31 - u32(__builtin_clz(a)) : ~0u; }
KV_INLINE u32 find_top64(u64 a) { return a ? 63 - u32(__builtin_clzll(a)) : ~0u; }

template <class T>
KV_INLINE u32 absolute_difference(u32 a, u32 b, u32 c) {
  return c + (T(a) < T(b) ? b - a : a - b);
}

template <bool kSigned>
KV_INLINE u32 low24(u32 a, u32 b) {
  return kSigned ? u32(s32(a << 8) >> 8) * u32(s32(b << 8) >> 8) : (a & 0xffffff) * (b & 0xffffff);
}
/// Bits 16 to 47 of the 48-bit product.
template <bool kSigned>
KV_INLINE u32 high24(u32 a, u32 b) {
  if (kSigned) return u32(u64(s64(s32(a << 8) >> 8) * (s32(b << 8) >> 8)) >> 16);
  return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16);
}

/// Ones from position a on, b of them.
template <bool kWrap>
KV_INLINE u32 bit_mask(u32 a, u32 b) {
  const u32 at = kWrap ? a & 31 : a, count = kWrap ? b & 31 : b;
  const u32 ones = count >= 32 ? ~0u : (1u << count) - 1;
  return at >= 32 ? 0 : ones << at;
}
/// The low b bits of a, extended.
template <bool kSigned, bool kWrap>
KV_INLINE u32 extend(u32 a, u32 b) {
  const u32 count = kWrap ? b & 31 : b;
  if (count >= 32) return a;
  if (count == 0) return 0;
  const u32 cut = a << (32 - count);
  return kSigned ? u32(s32(cut) >> (32 - count)) : cut >> (32 - count);
}

/// d, carry = a + b + carry, or a - b - carry (the carry out is then a borrow).
template <class T, bool kSubtract>
KV_STEP with_carry(Warp& w, const Ins* i) {
  const T* a = slot<T>(w, i->r[2]);
  const T* b = slot<T>(w, i->r[3]);
  const u32* in = slot<u32>(w, i->r[4]);
  alignas(64) T t[32];
  alignas(64) u32 c[32];
  for (int l = 0; l < 32; ++l) {
    const T first = kSubtract ? T(a[l] - b[l]) : T(a[l] + b[l]);
    const u32 one = kSubtract ? a[l] < b[l] : first < a[l];
    t[l] = kSubtract ? T(first - in[l]) : T(first + in[l]);
    c[l] = one | u32(kSubtract ? first < in[l] : t[l] < first);
  }
  blend(slot<T>(w, i->r[0]), t, w.write);
  blend(slot<u32>(w, i->r[1]), c, w.write);
  KV_NEXT(w, i + 1);
}

constexpr auto kEq = [](auto a, auto b) { return a == b; };
constexpr auto kNe = [](auto a, auto b) { return a != b; };
constexpr auto kLt = [](auto a, auto b) { return a < b; };
constexpr auto kLe = [](auto a, auto b) { return a <= b; };
constexpr auto kGt = [](auto a, auto b) { return a > b; };
constexpr auto kGe = [](auto a, auto b) { return a >= b; };
template <auto F, class T>
constexpr auto kNarrow = [](u32 a, u32 b) { return F(T(a), T(b)); };

constexpr auto kAdd16 = [](u32 a, u32 b) { return u32(u16(a + b)); };
constexpr auto kSub16 = [](u32 a, u32 b) { return u32(u16(a - b)); };
constexpr auto kMul16 = [](u32 a, u32 b) { return u32(u16(a * b)); };

constexpr FormRow kRows[] = {
    {"add.{u32,s32,b32}", "2=22", Taint::kAdd, binary32<[](u32 a, u32 b) { return a + b; }>},
    {"sub.{u32,s32}", "2=22", Taint::kAdd, binary32<[](u32 a, u32 b) { return a - b; }>},
    {"add.{u64,s64}", "4=44", Taint::kAdd, binary64<[](u64 a, u64 b) { return a + b; }>},
    {"sub.{u64,s64}", "4=44", Taint::kAdd, binary64<[](u64 a, u64 b) { return a - b; }>},
    {"add.{u16,s16}", "2=22", Taint::kAdd, binary32<kAdd16>},
    {"sub.{u16,s16}", "2=22", Taint::kAdd, binary32<kSub16>},
    {"add.{u16x2,s16x2}", "2=22", Taint::kHalves, binary32<[](u32 a, u32 b) {
       return ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000));
     }>},
    {"add.sat.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(clamp32(s64(s32(a)) + s32(b))); }>},
    {"sub.sat.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(clamp32(s64(s32(a)) - s32(b))); }>},

    {"mul.lo.{u32,s32}", "2=22", Taint::kAdd, binary32<[](u32 a, u32 b) { return a * b; }>},
    {"mul.lo.{u64,s64}", "4=44", Taint::kAdd, binary64<[](u64 a, u64 b) { return a * b; }>},
    {"mul.lo.{u16,s16}", "2=22", Taint::kAdd, binary32<kMul16>},
    {"mul.hi.u32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u64(a) * b >> 32); }>},
    {"mul.hi.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u64(s64(s32(a)) * s32(b)) >> 32); }>},
    {"mul.hi.u64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return high64(a, b); }>},
    {"mul.hi.s64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return high_signed64(a, b); }>},
    {"mul.hi.u16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return (u32(u16(a)) * u16(b)) / 65536; }>},
    {"mul.hi.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(s32(s16(a)) * s16(b) >> 16)); }>},
    {"mul.wide.u32", "4=22", Taint::kAll,
     map2<[](u32 a, u32 b) { return u64(a) * b; }, u64, u32, u32>},
    {"mul.wide.s32", "4=22", Taint::kAll,
     map2<[](u32 a, u32 b) { return u64(s64(s32(a)) * s32(b)); }, u64, u32, u32>},
    {"mul.wide.u16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(a)) * u16(b); }>},
    {"mul.wide.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(s32(s16(a)) * s16(b)); }>},
    {"mul24.lo.u32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }>},
    {"mul24.lo.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(s32(a << 8) >> 8) * u32(s32(b << 8) >> 8); }>},

    {"mad.lo.{u32,s32}", "2=222", Taint::kAdd,
     ternary32<[](u32 a, u32 b, u32 c) { return a * b + c; }>},
    {"mad.lo.{u64,s64}", "4=444", Taint::kAdd,
     ternary64<[](u64 a, u64 b, u64 c) { return a * b + c; }>},
    {"mad.lo.{u16,s16}", "2=222", Taint::kAdd,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u16(a * b + c)); }>},
    {"mad.hi.u32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u64(a) * b >> 32) + c; }>},
    {"mad.hi.s32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u64(s64(s32(a)) * s32(b)) >> 32) + c; }>},
    {"mad.hi.u64", "4=444", Taint::kAll,
     ternary64<[](u64 a, u64 b, u64 c) { return high64(a, b) + c; }>},
    {"mad.hi.s64", "4=444", Taint::kAll,
     ternary64<[](u64 a, u64 b, u64 c) { return high_signed64(a, b) + c; }>},
    {"mad.wide.u32", "4=224", Taint::kAll,
     map3<[](u32 a, u32 b, u64 c) { return u64(a) * b + c; }, u64, u32, u32, u64>},
    {"mad.wide.s32", "4=224", Taint::kAll,
     map3<[](u32 a, u32 b, u64 c) { return u64(s64(s32(a)) * s32(b)) + c; }, u64, u32, u32, u64>},
    {"mad.wide.u16", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u16(a)) * u16(b) + c; }>},
    {"mad.wide.s16", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(s32(s16(a)) * s16(b)) + c; }>},

    {"mad.hi.u16", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u16((u32(u16(a)) * u16(b)) / 65536 + c)); }>},
    {"mad.hi.s16", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u16(u32(s32(s16(a)) * s16(b) >> 16) + c)); }>},
    {"mad.hi.sat.s32", "2=222", Taint::kAll, ternary32<[](u32 a, u32 b, u32 c) {
       return u32(clamp32((s64(s32(a)) * s32(b) >> 32) + s32(c)));
     }>},
    {"mul24.hi.u32", "2=22", Taint::kAll, binary32<high24<false>>},
    {"mul24.hi.s32", "2=22", Taint::kAll, binary32<high24<true>>},
    {"mad24.lo.u32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return low24<false>(a, b) + c; }>},
    {"mad24.lo.s32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return low24<true>(a, b) + c; }>},
    {"mad24.hi.u32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return high24<false>(a, b) + c; }>},
    {"mad24.hi.s32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return high24<true>(a, b) + c; }>},
    {"mad24.hi.sat.s32", "2=222", Taint::kAll, ternary32<[](u32 a, u32 b, u32 c) {
       return u32(clamp32(s64(s32(high24<true>(a, b))) + s32(c)));
     }>},
    {"~addc.32", "22=222", Taint::kAll, with_carry<u32, false>},
    {"~addc.64", "42=442", Taint::kAll, with_carry<u64, false>},
    {"~subc.32", "22=222", Taint::kAll, with_carry<u32, true>},
    {"~subc.64", "42=442", Taint::kAll, with_carry<u64, true>},

    {"div.u32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return divide(a, b); }>},
    {"div.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(divide_signed(s32(a), s32(b))); }>},
    {"div.u64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return divide(a, b); }>},
    {"div.s64", "4=44", Taint::kAll,
     binary64<[](u64 a, u64 b) { return u64(divide_signed(s64(a), s64(b))); }>},
    {"div.u16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(divide(u16(a), u16(b))); }>},
    {"div.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(divide_signed(s16(a), s16(b)))); }>},
    {"rem.u32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return remainder(a, b); }>},
    {"rem.s32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(remainder_signed(s32(a), s32(b))); }>},
    {"rem.u64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return remainder(a, b); }>},
    {"rem.s64", "4=44", Taint::kAll,
     binary64<[](u64 a, u64 b) { return u64(remainder_signed(s64(a), s64(b))); }>},
    {"rem.u16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(remainder(u16(a), u16(b))); }>},
    {"rem.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(remainder_signed(s16(a), s16(b)))); }>},

    {"min.u32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return smaller(a, b); }>},
    {"max.u32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return larger(a, b); }>},
    {"min.s32", "2=22", Taint::kAll,
     map2<[](s32 a, s32 b) { return smaller(a, b); }, s32, s32, s32>},
    {"max.s32", "2=22", Taint::kAll,
     map2<[](s32 a, s32 b) { return larger(a, b); }, s32, s32, s32>},
    {"max.relu.s32", "2=22", Taint::kAll,
     map2<[](s32 a, s32 b) { return larger(larger(a, b), 0); }, s32, s32, s32>},
    {"min.relu.s32", "2=22", Taint::kAll,
     map2<[](s32 a, s32 b) { return larger(smaller(a, b), 0); }, s32, s32, s32>},
    {"min.u64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return smaller(a, b); }>},
    {"max.u64", "4=44", Taint::kAll, binary64<[](u64 a, u64 b) { return larger(a, b); }>},
    {"min.s64", "4=44", Taint::kAll,
     map2<[](s64 a, s64 b) { return smaller(a, b); }, s64, s64, s64>},
    {"max.s64", "4=44", Taint::kAll,
     map2<[](s64 a, s64 b) { return larger(a, b); }, s64, s64, s64>},
    {"min.u16", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return smaller(a, b); }>},
    {"max.u16", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) { return larger(a, b); }>},
    {"min.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(smaller(s16(a), s16(b)))); }>},
    {"max.s16", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return u32(u16(larger(s16(a), s16(b)))); }>},

    {"neg.s32", "2=2", Taint::kAdd, unary32<[](u32 a) { return 0 - a; }>},
    {"neg.s64", "4=4", Taint::kAdd, unary64<[](u64 a) { return 0 - a; }>},
    {"neg.s16", "2=2", Taint::kAdd, unary32<[](u32 a) { return u32(u16(0 - a)); }>},
    {"abs.s32", "2=2", Taint::kAll, unary32<[](u32 a) { return s32(a) < 0 ? 0 - a : a; }>},
    {"abs.s64", "4=4", Taint::kAll, unary64<[](u64 a) { return s64(a) < 0 ? 0 - a : a; }>},
    {"abs.s16", "2=2", Taint::kAll,
     unary32<[](u32 a) { return u32(u16(s16(a) < 0 ? 0 - a : a)); }>},

    {"sad.u32", "2=222", Taint::kAll, ternary32<absolute_difference<u32>>},
    {"sad.s32", "2=222", Taint::kAll, ternary32<absolute_difference<s32>>},
    {"sad.u16", "2=222", Taint::kAll, ternary32<[](u32 a, u32 b, u32 c) {
       return u32(u16(absolute_difference<u16>(u16(a), u16(b), c)));
     }>},
    {"sad.s16", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return u32(u16(absolute_difference<s16>(a, b, c))); }>},
    {"sad.u64", "4=444", Taint::kAll,
     ternary64<[](u64 a, u64 b, u64 c) { return c + (a < b ? b - a : a - b); }>},
    {"sad.s64", "4=444", Taint::kAll,
     ternary64<[](u64 a, u64 b, u64 c) { return c + (s64(a) < s64(b) ? b - a : a - b); }>},
    {"bmsk.clamp.b32", "2=22", Taint::kAll, binary32<bit_mask<false>>},
    {"bmsk.wrap.b32", "2=22", Taint::kAll, binary32<bit_mask<true>>},
    {"szext.clamp.u32", "2=22", Taint::kAll, binary32<extend<false, false>>},
    {"szext.wrap.u32", "2=22", Taint::kAll, binary32<extend<false, true>>},
    {"szext.clamp.s32", "2=22", Taint::kAll, binary32<extend<true, false>>},
    {"szext.wrap.s32", "2=22", Taint::kAll, binary32<extend<true, true>>},
    {"popc.b32", "2=2", Taint::kAll, unary32<[](u32 a) { return u32(__builtin_popcount(a)); }>},
    {"popc.b64", "2=4", Taint::kAll,
     map1<[](u64 a) { return u32(__builtin_popcountll(a)); }, u32, u64>},
    {"clz.b32", "2=2", Taint::kAll, unary32<[](u32 a) { return 31 - find_top(a); }>},
    {"clz.b64", "2=4", Taint::kAll, map1<[](u64 a) { return 63 - find_top64(a); }, u32, u64>},
    {"bfind.u32", "2=2", Taint::kAll, unary32<[](u32 a) { return find_top(a); }>},
    {"bfind.s32", "2=2", Taint::kAll, unary32<[](u32 a) { return find_top(s32(a) < 0 ? ~a : a); }>},
    {"bfind.u64", "2=4", Taint::kAll, map1<[](u64 a) { return find_top64(a); }, u32, u64>},
    {"bfind.s64", "2=4", Taint::kAll,
     map1<[](u64 a) { return find_top64(s64(a) < 0 ? ~a : a); }, u32, u64>},
    {"bfind.shiftamt.u32", "2=2", Taint::kAll,
     unary32<[](u32 a) { return a ? 31 - find_top(a) : ~0u; }>},
    {"bfind.shiftamt.s32", "2=2", Taint::kAll, unary32<[](u32 a) {
       const u32 x = s32(a) < 0 ? ~a : a;
       return x ? 31 - find_top(x) : ~0u;
     }>},
    {"bfind.shiftamt.u64", "2=4", Taint::kAll,
     map1<[](u64 a) { return a ? 63 - find_top64(a) : ~0u; }, u32, u64>},
    {"bfind.shiftamt.s64", "2=4", Taint::kAll,
     map1<
         [](u64 a) {
           const u64 x = s64(a) < 0 ? ~a : a;
           return x ? 63 - find_top64(x) : ~0u;
         },
         u32, u64>},
    {"brev.b32", "2=2", Taint::kAll, unary32<[](u32 a) { return reverse(a); }>},
    {"brev.b64", "4=4", Taint::kAll, unary64<[](u64 a) { return reverse64(a); }>},
    {"bfe.u32", "2=222", Taint::kAll, ternary32<extract_field<u32, u32, 32>>},
    {"bfe.s32", "2=222", Taint::kAll, ternary32<extract_field<s32, u32, 32>>},
    {"bfe.u64", "4=422", Taint::kAll, map3<extract_field<u64, u64, 64>, u64, u64, u32, u32>},
    {"bfe.s64", "4=422", Taint::kAll, map3<extract_field<s64, u64, 64>, u64, u64, u32, u32>},
    {"bfi.b32", "2=2222", Taint::kAll, map4<insert_field<u32, 32>, u32, u32, u32, u32, u32>},
    {"bfi.b64", "4=4422", Taint::kAll, map4<insert_field<u64, 64>, u64, u64, u64, u32, u32>},
    {"prmt.b32", "2=222", Taint::kPermute, ternary32<permute>},
    {"prmt.b32.f4e", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kForward4>>},
    {"prmt.b32.b4e", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kBackward4>>},
    {"prmt.b32.rc8", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kReplicate8>>},
    {"prmt.b32.ecl", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kEdgeLeft>>},
    {"prmt.b32.ecr", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kEdgeRight>>},
    {"prmt.b32.rc16", "2=222", Taint::kAll, ternary32<permute_mode<PermuteMode::kReplicate16>>},
    {"dp4a.s32.s32", "2=222", Taint::kAll, ternary32<dot4<true, true>>},
    {"dp4a.s32.u32", "2=222", Taint::kAll, ternary32<dot4<true, false>>},
    {"dp4a.u32.s32", "2=222", Taint::kAll, ternary32<dot4<false, true>>},
    {"dp4a.u32.u32", "2=222", Taint::kAll, ternary32<dot4<false, false>>},
    {"dp2a.lo.s32.s32", "2=222", Taint::kAll, ternary32<dot2<true, true, 0>>},
    {"dp2a.hi.s32.s32", "2=222", Taint::kAll, ternary32<dot2<true, true, 16>>},
    {"dp2a.lo.u32.s32", "2=222", Taint::kAll, ternary32<dot2<false, true, 0>>},
    {"dp2a.hi.u32.s32", "2=222", Taint::kAll, ternary32<dot2<false, true, 16>>},
    {"dp2a.lo.s32.u32", "2=222", Taint::kAll, ternary32<dot2<true, false, 0>>},
    {"dp2a.hi.s32.u32", "2=222", Taint::kAll, ternary32<dot2<true, false, 16>>},
    {"dp2a.lo.u32.u32", "2=222", Taint::kAll, ternary32<dot2<false, false, 0>>},
    {"dp2a.hi.u32.u32", "2=222", Taint::kAll, ternary32<dot2<false, false, 16>>},

#define KV_COMPARE(name, f)                                                                   \
  {"setp." name ".u32", "p=22", Taint::kAll, compare<f, u32>},                                \
      {"setp." name ".s32", "p=22", Taint::kAll, compare<f, s32>},                            \
      {"setp." name ".u64", "p=44", Taint::kAll, compare<f, u64>},                            \
      {"setp." name ".s64", "p=44", Taint::kAll, compare<f, s64>},                            \
      {"setp." name ".u16", "p=22", Taint::kAll, compare<kNarrow<f, u16>, u32>},              \
      {"setp." name ".s16", "p=22", Taint::kAll, compare<kNarrow<f, s16>, u32>},              \
      {"set." name ".{u32,s32}.u32", "2=22", Taint::kAll, compare_to_register<f, u32, ~0u>},  \
      {"set." name ".{u32,s32}.s32", "2=22", Taint::kAll, compare_to_register<f, s32, ~0u>},  \
      {"set." name ".{u32,s32}.u64", "2=44", Taint::kAll, compare_to_register<f, u64, ~0u>},  \
      {"set." name ".{u32,s32}.s64", "2=44", Taint::kAll, compare_to_register<f, s64, ~0u>},  \
      {"set." name ".f32.u32", "2=22", Taint::kAll, compare_to_register<f, u32, 0x3f800000>}, \
      {"set." name ".f32.s32", "2=22", Taint::kAll, compare_to_register<f, s32, 0x3f800000>}, \
      {"set." name ".f32.u64", "2=44", Taint::kAll, compare_to_register<f, u64, 0x3f800000>}, \
      {"set." name ".f32.s64", "2=44", Taint::kAll, compare_to_register<f, s64, 0x3f800000>}, \
      {"set." name ".{u32,s32}.u16", "2=22", Taint::kAll,                                     \
       compare_to_register<kNarrow<f, u16>, u32, ~0u>},                                       \
      {"set." name ".{u32,s32}.s16", "2=22", Taint::kAll,                                     \
       compare_to_register<kNarrow<f, s16>, u32, ~0u>},                                       \
      {"set." name ".f32.u16", "2=22", Taint::kAll,                                           \
       compare_to_register<kNarrow<f, u16>, u32, 0x3f800000>},                                \
  {                                                                                           \
    "set." name ".f32.s16", "2=22", Taint::kAll,                                              \
        compare_to_register<kNarrow<f, s16>, u32, 0x3f800000>                                 \
  }
#define KV_EQUAL(name, f)                                                                      \
  {"set." name ".{u32,s32}.b32", "2=22", Taint::kAll, compare_to_register<f, u32, ~0u>},       \
      {"set." name ".f32.b32", "2=22", Taint::kAll, compare_to_register<f, u32, 0x3f800000>},  \
      {"set." name ".{u32,s32}.b16", "2=22", Taint::kAll,                                      \
       compare_to_register<kNarrow<f, u16>, u32, ~0u>},                                        \
      {"set." name ".f32.b16", "2=22", Taint::kAll,                                            \
       compare_to_register<kNarrow<f, u16>, u32, 0x3f800000>},                                 \
      {"set." name ".{u32,s32}.b64", "2=44", Taint::kAll, compare_to_register<f, u64, ~0u>}, { \
    "set." name ".f32.b64", "2=44", Taint::kAll, compare_to_register<f, u64, 0x3f800000>       \
  }
    KV_COMPARE("eq", kEq),
    KV_COMPARE("ne", kNe),
    KV_COMPARE("{lt,lo}", kLt),
    KV_COMPARE("{le,ls}", kLe),
    KV_COMPARE("{gt,hi}", kGt),
    KV_COMPARE("{ge,hs}", kGe),
    KV_EQUAL("eq", kEq),
    KV_EQUAL("ne", kNe),
    {"setp.eq.b32", "p=22", Taint::kAll, compare<kEq, u32>},
    {"setp.ne.b32", "p=22", Taint::kAll, compare<kNe, u32>},
    {"setp.eq.b64", "p=44", Taint::kAll, compare<kEq, u64>},
    {"setp.ne.b64", "p=44", Taint::kAll, compare<kNe, u64>},
    {"setp.eq.b16", "p=22", Taint::kAll, compare<kEq, u32>},
    {"setp.ne.b16", "p=22", Taint::kAll, compare<kNe, u32>},
};

}  // namespace

FormRows integer_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
