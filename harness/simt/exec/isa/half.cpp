// Half precision: f16, bf16 and their pairs. PTX ISA 9.0 sections 9.7.4 and 9.7.7. A sum or product
// of two f16 is exact or rounded harmlessly in float (24 >= 2 * 11 + 2); everything else goes
// through double, exact or rounded to odd.
#include "harness/simt/exec/isa/lanes.h"
#include "harness/simt/exec/math/approximate.h"

namespace kv::simt::KV_ISA {
namespace {

struct F16 {
  KV_INLINE static float value(u32 h) { return half_value(h & 0xffff); }
  KV_INLINE static u32 of_float(float x) { return float_to_half(bits_of(x)); }
  KV_INLINE static u32 of_double(double x) { return double_to_half(x, Round::kNearest); }
  static constexpr u32 kOne = 0x3c00, kInfinity = 0x7c00, kMinNormal = 0x0400;
};
struct Bf16 {
  KV_INLINE static float value(u32 h) { return bfloat_value(h & 0xffff); }
  KV_INLINE static u32 of_float(float x) { return float_to_bfloat(bits_of(x)); }
  KV_INLINE static u32 of_double(double x) { return double_to_bfloat(x, Round::kNearest); }
  static constexpr u32 kOne = 0x3f80, kInfinity = 0x7f80, kMinNormal = 0x0080;
};

constexpr u32 kPlain = 0, kFtz = 1, kSat = 2, kRelu = 4;

template <class F, u32 kHow>
KV_INLINE u32 in(u32 h) {
  const u32 x = h & 0xffff;
  return (kHow & kFtz) && (x & 0x7fff) < F::kMinNormal ? x & 0x8000 : x;
}
template <class F, u32 kHow>
KV_INLINE u32 out(u32 h) {
  u32 x = h;
  if (kHow & kFtz) x = (x & 0x7fff) < F::kMinNormal ? x & 0x8000 : x;
  if (kHow & kSat) {
    const bool nan = (x & 0x7fff) > F::kInfinity;
    x = nan || (x & 0x8000) ? 0 : x > F::kOne ? F::kOne : x;
  }
  if (kHow & kRelu) x = (x & 0x7fff) > F::kInfinity ? 0x7fff : x & 0x8000 ? 0 : x;
  return x;
}

template <class F, u32 kHow>
constexpr auto kAdd = [](u32 a, u32 b) {
  return out<F, kHow>(F::of_float(F::value(in<F, kHow>(a)) + F::value(in<F, kHow>(b))));
};
template <class F, u32 kHow>
constexpr auto kSub = [](u32 a, u32 b) {
  return out<F, kHow>(F::of_float(F::value(in<F, kHow>(a)) - F::value(in<F, kHow>(b))));
};
/// The product of two bf16 may be below the smallest float: round it once, from double.
template <class F, u32 kHow>
constexpr auto kMul = [](u32 a, u32 b) {
  const float x = F::value(in<F, kHow>(a)), y = F::value(in<F, kHow>(b));
  if (F::kInfinity == F16::kInfinity) return out<F, kHow>(F::of_float(x * y));
  return out<F, kHow>(F::of_double(double(x) * double(y)));
};
template <class F, u32 kHow>
constexpr auto kFma = [](u32 a, u32 b, u32 c) {
  const double p = double(F::value(in<F, kHow>(a))) * double(F::value(in<F, kHow>(b)));
  return out<F, kHow>(F::of_double(add_odd(p, double(F::value(in<F, kHow>(c))))));
};
template <class F, bool kMax, u32 kHow, bool kNan>
constexpr auto kPick = [](u32 p, u32 q) {
  const u32 x = in<F, kHow>(p), y = in<F, kHow>(q);
  const float a = F::value(x), b = F::value(y);
  const u32 equal = kMax ? (x & y) : (x | y);
  const u32 both = a == b ? equal : (kMax ? a > b : a < b) ? x : y;
  if (a == a && b == b) return both;
  if (kNan) return u32(0x7fff);
  return a == a ? x : b == b ? y : u32(0x7fff);
};
/// .xorsign.abs: the magnitude picked, with the product's sign.
template <class F, bool kMax, u32 kHow, bool kNan>
constexpr auto kPickXorsign = [](u32 p, u32 q) {
  const u32 u = kPick<F, kMax, kHow, kNan>(p & 0x7fff, q & 0x7fff);
  return u > F::kInfinity ? 0x7fffu : u | ((p ^ q) & 0x8000);
};
template <class F, u32 kHow>
constexpr auto kNeg = [](u32 a) {
  const u32 x = in<F, kHow>(a);
  return (x & 0x7fff) > F::kInfinity ? 0x7fffu : x ^ 0x8000;
};
template <class F, u32 kHow>
constexpr auto kAbs = [](u32 a) {
  const u32 x = in<F, kHow>(a) & 0x7fff;
  return x > F::kInfinity ? 0x7fffu : x;
};
template <class F, u32 kHow>
constexpr auto kExp2 = [](u32 a) {
  const float x = F::value(in<F, kHow>(a));
  return x == x ? out<F, kHow>(F::of_double(Exp2::exact(x))) : 0x7fffu;
};
template <class F, u32>
constexpr auto kTanh = [](u32 a) {
  const float x = F::value(a);
  return x == x ? (x == 0 ? a & 0xffff : F::of_double(Tanh::exact(x))) : 0x7fffu;
};

/// Both halves of a pair.
template <auto G>
constexpr auto kPair1 = [](u32 a) { return u32(G(a & 0xffff)) | u32(G(a >> 16)) << 16; };
template <auto G>
constexpr auto kPair2 =
    [](u32 a, u32 b) { return u32(G(a & 0xffff, b & 0xffff)) | u32(G(a >> 16, b >> 16)) << 16; };
template <auto G>
constexpr auto kPair3 = [](u32 a, u32 b, u32 c) {
  return u32(G(a & 0xffff, b & 0xffff, c & 0xffff)) | u32(G(a >> 16, b >> 16, c >> 16)) << 16;
};

constexpr auto kEq = [](float a, float b) { return a == b; };
constexpr auto kNe = [](float a, float b) { return a < b || a > b; };
constexpr auto kLt = [](float a, float b) { return a < b; };
constexpr auto kLe = [](float a, float b) { return a <= b; };
constexpr auto kGt = [](float a, float b) { return a > b; };
constexpr auto kGe = [](float a, float b) { return a >= b; };
constexpr auto kEqu = [](float a, float b) { return !(a < b || a > b); };
constexpr auto kNeu = [](float a, float b) { return !(a == b); };
constexpr auto kLtu = [](float a, float b) { return !(a >= b); };
constexpr auto kLeu = [](float a, float b) { return !(a > b); };
constexpr auto kGtu = [](float a, float b) { return !(a <= b); };
constexpr auto kGeu = [](float a, float b) { return !(a < b); };
constexpr auto kNum = [](float a, float b) { return a == a && b == b; };
constexpr auto kNanTest = [](float a, float b) { return !(a == a && b == b); };
template <class F, u32 kHow, auto C>
constexpr auto kTest =
    [](u32 a, u32 b) { return C(F::value(in<F, kHow>(a)), F::value(in<F, kHow>(b))); };
/// set to a pair: all ones or the format's one in each half.
template <class F, u32 kHow, auto C, u32 kTrue>
constexpr auto kSetHalf = [](u32 a, u32 b) { return kTest<F, kHow, C>(a, b) ? kTrue : 0u; };

/// setp on pairs sets one predicate from each half.
template <class F, u32 kHow, auto C>
KV_STEP compare_pair(Warp& w, const Ins* i) {
  const u32* a = slot<u32>(w, i->r[2]);
  const u32* b = slot<u32>(w, i->r[3]);
  alignas(64) u32 low[32], high[32];
  for (int l = 0; l < 32; ++l) {
    low[l] = kTest<F, kHow, C>(a[l], b[l]) ? ~0u : 0;
    high[l] = kTest<F, kHow, C>(a[l] >> 16, b[l] >> 16) ? ~0u : 0;
  }
  set_predicate(w, i->r[0], top_bits(low));
  set_predicate(w, i->r[1], top_bits(high));
  KV_NEXT(w, i + 1);
}

#define KV_HOW2(name, f, F, type, how)                                      \
  {name "." type, "2=22", Taint::kAll, binary32<f<F, how>>}, {              \
    name "." type "x2", "2=22", Taint::kHalves, binary32<kPair2<f<F, how>>> \
  }
#define KV_HOW3(name, F, type, how)                                              \
  {name "." type, "2=222", Taint::kAll, ternary32<kFma<F, how>>}, {              \
    name "." type "x2", "2=222", Taint::kHalves, ternary32<kPair3<kFma<F, how>>> \
  }
#define KV_PICK_ONE(name, f, F, type, max, how, nan)                                  \
  {name "." type, "2=22", Taint::kAll, binary32<f<F, max, how, nan>>}, {              \
    name "." type "x2", "2=22", Taint::kHalves, binary32<kPair2<f<F, max, how, nan>>> \
  }
#define KV_PICK(name, F, type, max, how)                                        \
  KV_PICK_ONE(name, kPick, F, type, max, how, false),                           \
      KV_PICK_ONE(name ".NaN", kPick, F, type, max, how, true),                 \
      KV_PICK_ONE(name ".xorsign.abs", kPickXorsign, F, type, max, how, false), \
      KV_PICK_ONE(name ".NaN.xorsign.abs", kPickXorsign, F, type, max, how, true)
#define KV_UNARY(name, f, F, type, how)                                   \
  {name "." type, "2=2", Taint::kAll, unary32<f<F, how>>}, {              \
    name "." type "x2", "2=2", Taint::kHalves, unary32<kPair1<f<F, how>>> \
  }
#define KV_COMPARE_AS(name, F, type, how, c)                                                     \
  {"setp." name "." type, "p=22", Taint::kAll, compare<kTest<F, how, c>, u32>},                  \
      {"setp." name "." type "x2", "pp=22", Taint::kAll, compare_pair<F, how, c>},               \
      {"set." name "." type "." type, "2=22", Taint::kAll,                                       \
       binary32<kSetHalf<F, how, c, F::kOne>>},                                                  \
      {"set." name ".{u32,s32}." type, "2=22", Taint::kAll, binary32<kSetHalf<F, how, c, ~0u>>}, \
      {"set." name "." type "x2." type "x2", "2=22", Taint::kHalves,                             \
       binary32<kPair2<kSetHalf<F, how, c, F::kOne>>>},                                          \
  {                                                                                              \
    "set." name ".{u32,s32}." type "x2", "2=22", Taint::kHalves,                                 \
        binary32<kPair2<kSetHalf<F, how, c, 0xffffu>>>                                           \
  }
#define KV_COMPARE(name, c)                                                                    \
  KV_COMPARE_AS(name, F16, "f16", kPlain, c), KV_COMPARE_AS(name ".ftz", F16, "f16", kFtz, c), \
      KV_COMPARE_AS(name, Bf16, "bf16", kPlain, c)

constexpr FormRow kRows[] = {
    KV_HOW2("add{.rn,}", kAdd, F16, "f16", kPlain),
    KV_HOW2("add{.rn,}.ftz", kAdd, F16, "f16", kFtz),
    KV_HOW2("add{.rn,}.sat", kAdd, F16, "f16", kSat),
    KV_HOW2("add{.rn,}.ftz.sat", kAdd, F16, "f16", kFtz | kSat),
    KV_HOW2("sub{.rn,}", kSub, F16, "f16", kPlain),
    KV_HOW2("sub{.rn,}.ftz", kSub, F16, "f16", kFtz),
    KV_HOW2("sub{.rn,}.sat", kSub, F16, "f16", kSat),
    KV_HOW2("sub{.rn,}.ftz.sat", kSub, F16, "f16", kFtz | kSat),
    KV_HOW2("mul{.rn,}", kMul, F16, "f16", kPlain),
    KV_HOW2("mul{.rn,}.ftz", kMul, F16, "f16", kFtz),
    KV_HOW2("mul{.rn,}.sat", kMul, F16, "f16", kSat),
    KV_HOW2("mul{.rn,}.ftz.sat", kMul, F16, "f16", kFtz | kSat),
    KV_HOW3("fma.rn", F16, "f16", kPlain),
    KV_HOW3("fma.rn.ftz", F16, "f16", kFtz),
    KV_HOW3("fma.rn.sat", F16, "f16", kSat),
    KV_HOW3("fma.rn.ftz.sat", F16, "f16", kFtz | kSat),
    KV_HOW3("fma.rn.relu", F16, "f16", kRelu),
    KV_HOW3("fma.rn.ftz.relu", F16, "f16", kFtz | kRelu),
    KV_HOW2("add{.rn,}", kAdd, Bf16, "bf16", kPlain),
    KV_HOW2("sub{.rn,}", kSub, Bf16, "bf16", kPlain),
    KV_HOW2("mul{.rn,}", kMul, Bf16, "bf16", kPlain),
    KV_HOW3("fma.rn", Bf16, "bf16", kPlain),
    KV_HOW3("fma.rn.relu", Bf16, "bf16", kRelu),
    KV_PICK("min", F16, "f16", false, kPlain),
    KV_PICK("max", F16, "f16", true, kPlain),
    KV_PICK("min.ftz", F16, "f16", false, kFtz),
    KV_PICK("max.ftz", F16, "f16", true, kFtz),
    KV_PICK("min", Bf16, "bf16", false, kPlain),
    KV_PICK("max", Bf16, "bf16", true, kPlain),
    KV_UNARY("neg", kNeg, F16, "f16", kPlain),
    KV_UNARY("abs", kAbs, F16, "f16", kPlain),
    KV_UNARY("neg.ftz", kNeg, F16, "f16", kFtz),
    KV_UNARY("abs.ftz", kAbs, F16, "f16", kFtz),
    KV_UNARY("neg", kNeg, Bf16, "bf16", kPlain),
    KV_UNARY("abs", kAbs, Bf16, "bf16", kPlain),
    KV_UNARY("ex2.approx", kExp2, F16, "f16", kPlain),
    KV_UNARY("tanh.approx", kTanh, F16, "f16", kPlain),
    KV_UNARY("ex2.approx.ftz", kExp2, Bf16, "bf16", kFtz),
    KV_UNARY("tanh.approx", kTanh, Bf16, "bf16", kPlain),
    KV_COMPARE("eq", kEq),
    KV_COMPARE("ne", kNe),
    KV_COMPARE("lt", kLt),
    KV_COMPARE("le", kLe),
    KV_COMPARE("gt", kGt),
    KV_COMPARE("ge", kGe),
    KV_COMPARE("equ", kEqu),
    KV_COMPARE("neu", kNeu),
    KV_COMPARE("ltu", kLtu),
    KV_COMPARE("leu", kLeu),
    KV_COMPARE("gtu", kGtu),
    KV_COMPARE("geu", kGeu),
    KV_COMPARE("num", kNum),
    KV_COMPARE("nan", kNanTest),
};

}  // namespace

FormRows half_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
