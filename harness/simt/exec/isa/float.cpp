// Floating point of 32 and 64 bits. PTX ISA 9.0 section 9.7.3. NaN results are 0x7fffffff (f32) and
// 0x7ff8000000000000 (f64). An approximate instruction computes its function in double and then
// takes the float that the launch's rounding profile asks for, inside the documented bound.
#include "harness/simt/exec/isa/exponential512.h"
#include "harness/simt/exec/isa/extremum.h"
#include "harness/simt/exec/isa/lanes.h"
#include "harness/simt/exec/math/approximate.h"
#include "harness/simt/exec/math/fma64.h"

namespace kv::simt::KV_ISA {
namespace {

template <bool kFtz>
KV_INLINE float in(float x) {
  return kFtz ? flush(x) : x;
}
template <bool kFtz, bool kSat>
KV_INLINE u32 out(float x) {
  u32 u = canonical(x);
  if (kFtz) u = flush(u);
  return kSat ? saturate(u) : u;
}

template <bool kFtz, bool kSat>
constexpr auto kAdd = [](float a, float b) { return out<kFtz, kSat>(in<kFtz>(a) + in<kFtz>(b)); };
template <bool kFtz, bool kSat>
constexpr auto kSub = [](float a, float b) { return out<kFtz, kSat>(in<kFtz>(a) - in<kFtz>(b)); };
template <bool kFtz, bool kSat>
constexpr auto kMul = [](float a, float b) { return out<kFtz, kSat>(in<kFtz>(a) * in<kFtz>(b)); };
template <bool kFtz, bool kSat>
constexpr auto kFma = [](float a, float b, float c) {
  return out<kFtz, kSat>(fma_exact(in<kFtz>(a), in<kFtz>(b), in<kFtz>(c)));
};

/// The sum rounded to odd. An exact zero of operands of opposite sign is -0 when rounding down.
template <Round kMode>
KV_INLINE double directed_sum(double x, double y) {
  const double s = add_odd(x, y);
  const bool opposite = (bits_of(x) ^ bits_of(y)) >> 63;
  return kMode == Round::kDown && s == 0 && opposite ? -0.0 : s;
}

// Directed rounding: the exact result, or its rounding to odd, in double; then once to float.
template <Round kMode, bool kFtz, bool kSat>
constexpr auto kAddTo = [](float a, float b) {
  return out<kFtz, kSat>(
      round_to_float(directed_sum<kMode>(double(in<kFtz>(a)), double(in<kFtz>(b))), kMode));
};
template <Round kMode, bool kFtz, bool kSat>
constexpr auto kSubTo = [](float a, float b) { return kAddTo<kMode, kFtz, kSat>(a, -b); };
template <Round kMode, bool kFtz, bool kSat>
constexpr auto kMulTo = [](float a, float b) {
  return out<kFtz, kSat>(round_to_float(double(in<kFtz>(a)) * double(in<kFtz>(b)), kMode));
};
template <Round kMode, bool kFtz, bool kSat>
constexpr auto kFmaTo = [](float a, float b, float c) {
  const double p = double(in<kFtz>(a)) * double(in<kFtz>(b));
  return out<kFtz, kSat>(round_to_float(directed_sum<kMode>(p, double(in<kFtz>(c))), kMode));
};
// A quotient or root of floats is a number of at most 25 bits or 2^-49 away from all of them, so
// its double can be rounded again.
template <Round kMode, bool kFtz>
constexpr auto kDivTo = [](float a, float b) {
  const double x = in<kFtz>(a), y = in<kFtz>(b);
  return out<kFtz, false>(round_to_float(x / y, kMode));
};
template <bool kFtz>
constexpr auto kDiv = [](float a, float b) { return out<kFtz, false>(in<kFtz>(a) / in<kFtz>(b)); };
template <bool kFtz>
constexpr auto kRcp = [](float a) { return out<kFtz, false>(1.0f / in<kFtz>(a)); };
template <bool kFtz>
constexpr auto kSqrt = [](float a) { return out<kFtz, false>(__builtin_sqrtf(in<kFtz>(a))); };
template <Round kMode, bool kFtz>
constexpr auto kSqrtTo = [](float a) {
  return out<kFtz, false>(round_to_float(__builtin_sqrt(double(in<kFtz>(a))), kMode));
};

template <Pick kPick, bool kFtz, bool kNan>
constexpr auto kPickOne = [](float a, float b) { return pick<kPick, kFtz, kNan>(a, b); };
#ifdef __AVX512BW__
template <Pick kPick, bool kFtz, bool kNan>
constexpr Handler kPickHandler = map_words2<pick_words<kPick, kFtz, kNan>>;
#else
template <Pick kPick, bool kFtz, bool kNan>
constexpr Handler kPickHandler = map2<kPickOne<kPick, kFtz, kNan>, u32, float, float>;
#endif
template <Pick kPick, bool kFtz, bool kNan>
constexpr auto kPickXorsign = [](float a, float b) {
  const u32 sign = (bits_of(a) ^ bits_of(b)) & 0x80000000;
  const u32 u =
      pick<kPick, kFtz, kNan>(float_of(bits_of(a) & 0x7fffffff), float_of(bits_of(b) & 0x7fffffff));
  return float_of(u) == float_of(u) ? u | sign : kNanBits;
};

template <bool kFtz>
constexpr auto kNeg = [](u32 a) {
  const u32 x = kFtz ? flush(a) : a;
  return float_of(x) == float_of(x) ? x ^ 0x80000000 : kNanBits;
};
template <bool kFtz>
constexpr auto kAbs = [](u32 a) {
  const u32 x = kFtz ? flush(a) : a;
  return float_of(x) == float_of(x) ? x & 0x7fffffff : kNanBits;
};

constexpr auto kEq = [](auto a, auto b) { return a == b; };
constexpr auto kNe = [](auto a, auto b) { return a < b || a > b; };
constexpr auto kLt = [](auto a, auto b) { return a < b; };
constexpr auto kLe = [](auto a, auto b) { return a <= b; };
constexpr auto kGt = [](auto a, auto b) { return a > b; };
constexpr auto kGe = [](auto a, auto b) { return a >= b; };
constexpr auto kEqu = [](auto a, auto b) { return !(a < b || a > b); };
constexpr auto kNeu = [](auto a, auto b) { return !(a == b); };
constexpr auto kLtu = [](auto a, auto b) { return !(a >= b); };
constexpr auto kLeu = [](auto a, auto b) { return !(a > b); };
constexpr auto kGtu = [](auto a, auto b) { return !(a <= b); };
constexpr auto kGeu = [](auto a, auto b) { return !(a < b); };
constexpr auto kNum = [](auto a, auto b) { return a == a && b == b; };
constexpr auto kNanTest = [](auto a, auto b) { return !(a == a && b == b); };
template <auto F>
constexpr auto kFlushed = [](float a, float b) { return F(flush(a), flush(b)); };

KV_STEP test_property(Warp& w, const Ins* i) {
  // mode: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal
  const u32* a = slot<u32>(w, i->r[1]);
  alignas(64) u32 t[32];
  for (int l = 0; l < 32; ++l) {
    const u32 m = a[l] & 0x7fffffff;
    const bool answer[6] = {m<0x7f800000, m == 0x7f800000, m <= 0x7f800000, m> 0x7f800000,
                            m == 0 || (m < 0x7f800000 && m >= 0x00800000),
                            m != 0 && m < 0x00800000};
    t[l] = answer[i->mode] ? ~0u : 0;
  }
  set_predicate(w, i->r[0], top_bits(t));
  KV_NEXT(w, i + 1);
}

KV_STEP test_property64(Warp& w, const Ins* i) {
  const u64* a = slot<u64>(w, i->r[1]);
  const u64 infinity = 0x7ff0000000000000, normal = 0x0010000000000000;
  alignas(64) u32 t[32];
  for (int l = 0; l < 32; ++l) {
    const u64 m = a[l] & 0x7fffffffffffffff;
    const bool answer[6] = {m<infinity, m == infinity, m <= infinity, m> infinity,
                            m == 0 || (m < infinity && m >= normal), m != 0 && m < normal};
    t[l] = answer[i->mode] ? ~0u : 0;
  }
  set_predicate(w, i->r[0], top_bits(t));
  KV_NEXT(w, i + 1);
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the upper word of the input counts, the lower is
/// taken for zero, and so the result has a lower word of zeros (sections 9.7.3.14 and 9.7.3.18).
KV_INLINE double upper_word(double x) {
  return x == x ? double_of(bits_of(x) & 0xffffffff00000000) : x;
}
KV_INLINE double flush64(double x) {
  const u64 u = bits_of(x);
  return (u & 0x7ff0000000000000) == 0 ? double_of(u & 0x8000000000000000) : x;
}
constexpr auto kRcp64 = [](double a) {
  const double y = flush64(upper_word(1.0 / flush64(upper_word(a))));
  return a == a && y == y ? bits_of(y) : kNanBits64;
};
constexpr auto kRsqrt64 = [](double a) {
  const double x = flush64(upper_word(a));
  return canonical(upper_word(1.0 / __builtin_sqrt(x)));
};

/// An approximate function of one float.
template <class F, bool kFtz>
KV_STEP approximate(Warp& w, const Ins* i) {
  const float* a = slot<float>(w, i->r[1]);
  alignas(64) u32 t[32];
  u32 doubt = ~0u;
  if constexpr (requires { brief_lanes(F{}, a, t); }) {
    doubt = brief_lanes(F{}, a, t);
  } else if constexpr (requires(u32 * d) { F::brief(0.0f, d); }) {
    doubt = 0;
    KV_LANES {
      u32 here;
      t[l] = F::brief(kFtz ? flush(a[l]) : a[l], &here);
      doubt |= here;
    }
  }
  if (doubt) KV_LANES t[l] = F::nearest(kFtz ? flush(a[l]) : a[l]);
  if (w.launch->rounding >= KV_SIMT_ROUNDING_RANDOM && w.launch->rounding <= KV_SIMT_ROUNDING_DOWN)
      [[unlikely]] {
    const Perturbation how{w.launch->rounding, w.launch->rounding_seed, F::kId};
    for (int l = 0; l < 32; ++l) {
      const float x = kFtz ? flush(a[l]) : a[l];
      t[l] = perturb(how, bits_of(x), 0, t[l], F::exact(x), F::bound(x, F::exact(x)));
    }
  }
  if (kFtz) KV_LANES t[l] = flush(t[l]);
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}

/// div.approx and div.full: two ulp.
template <bool kFtz, bool kFull>
KV_STEP approximate_division(Warp& w, const Ins* i) {
  const float* a = slot<float>(w, i->r[1]);
  const float* b = slot<float>(w, i->r[2]);
  alignas(64) u32 t[32];
  KV_LANES t[l] = quotient<kFull>(in<kFtz>(a[l]), in<kFtz>(b[l]));
  if (w.launch->rounding >= KV_SIMT_ROUNDING_RANDOM && w.launch->rounding <= KV_SIMT_ROUNDING_DOWN)
      [[unlikely]] {
    const Perturbation how{w.launch->rounding, w.launch->rounding_seed, 20 + kFull};
    for (int l = 0; l < 32; ++l) {
      const double exact = double(in<kFtz>(a[l])) / double(in<kFtz>(b[l]));
      const double bound = within_sign(2 * ulp_of(exact), exact);
      t[l] = perturb(how, bits_of(a[l]), bits_of(b[l]), t[l], exact, bound);
    }
  }
  if (kFtz) KV_LANES t[l] = flush(t[l]);
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}

template <auto F>
inline constexpr Handler f1 = map1<F, u32, float>;
template <auto F>
inline constexpr Handler f2 = map2<F, u32, float, float>;
template <auto F>
inline constexpr Handler f3 = map3<F, u32, float, float, float>;
template <auto F>
inline constexpr Handler d1 = map1<F, u64, double>;
template <auto F>
inline constexpr Handler d2 = map2<F, u64, double, double>;

template <Pick kPick>
constexpr auto kPick64 = [](double a, double b) {
  const u64 x = bits_of(a), y = bits_of(b);
  const u64 equal = kPick == Pick::kMax ? (x & y) : (x | y);
  const u64 ordered = (kPick == Pick::kMax ? a > b : a < b) ? x : y;
  if (a == a && b == b) return a == b ? equal : ordered;
  return a == a ? x : (b == b ? y : kNanBits64);
};

#define KV_PER_FTZ(head, tail, roles, f, one, two) \
  {head tail, roles, Taint::kAll, f<one>}, { head ".ftz" tail, roles, Taint::kAll, f<two> }

#define KV_ARITHMETIC(name, roles, f, nearest, directed)                                   \
  {name "{.rn,}.f32", roles, Taint::kAll, f<nearest<false, false>>},                       \
      {name "{.rn,}.ftz.f32", roles, Taint::kAll, f<nearest<true, false>>},                \
      {name "{.rn,}.sat.f32", roles, Taint::kAll, f<nearest<false, true>>},                \
      {name "{.rn,}.ftz.sat.f32", roles, Taint::kAll, f<nearest<true, true>>},             \
      {name ".rz.f32", roles, Taint::kAll, f<directed<Round::kZero, false, false>>},       \
      {name ".rm.f32", roles, Taint::kAll, f<directed<Round::kDown, false, false>>},       \
      {name ".rp.f32", roles, Taint::kAll, f<directed<Round::kUp, false, false>>},         \
      {name ".rz.ftz.f32", roles, Taint::kAll, f<directed<Round::kZero, true, false>>},    \
      {name ".rm.ftz.f32", roles, Taint::kAll, f<directed<Round::kDown, true, false>>},    \
      {name ".rp.ftz.f32", roles, Taint::kAll, f<directed<Round::kUp, true, false>>},      \
      {name ".rz.sat.f32", roles, Taint::kAll, f<directed<Round::kZero, false, true>>},    \
      {name ".rz.ftz.sat.f32", roles, Taint::kAll, f<directed<Round::kZero, true, true>>}, \
      {name ".rm.sat.f32", roles, Taint::kAll, f<directed<Round::kDown, false, true>>},    \
      {name ".rm.ftz.sat.f32", roles, Taint::kAll, f<directed<Round::kDown, true, true>>}, \
      {name ".rp.sat.f32", roles, Taint::kAll, f<directed<Round::kUp, false, true>>}, {    \
    name ".rp.ftz.sat.f32", roles, Taint::kAll, f<directed<Round::kUp, true, true>>        \
  }

#define KV_COMPARE(name, f)                                                                       \
  {"setp." name ".f32", "p=22", Taint::kAll, compare<f, float>},                                  \
      {"setp." name ".ftz.f32", "p=22", Taint::kAll, compare<kFlushed<f>, float>},                \
      {"setp." name ".f64", "p=44", Taint::kAll, compare<f, double>},                             \
      {"set." name ".{u32,s32}.f32", "2=22", Taint::kAll, compare_to_register<f, float, ~0u>},    \
      {"set." name ".ftz.{u32,s32}.f32", "2=22", Taint::kAll,                                     \
       compare_to_register<kFlushed<f>, float, ~0u>},                                             \
      {"set." name ".{u32,s32}.f64", "2=44", Taint::kAll, compare_to_register<f, double, ~0u>},   \
      {"set." name ".f32.f64", "2=44", Taint::kAll, compare_to_register<f, double, 0x3f800000>},  \
      {"set." name ".f32.f32", "2=22", Taint::kAll, compare_to_register<f, float, 0x3f800000>}, { \
    "set." name ".ftz.f32.f32", "2=22", Taint::kAll,                                              \
        compare_to_register<kFlushed<f>, float, 0x3f800000>                                       \
  }

#define KV_MIN_MAX(name, which)                                                                    \
  {name ".f32", "2=22", Taint::kAll, kPickHandler<which, false, false>},                           \
      {name ".ftz.f32", "2=22", Taint::kAll, kPickHandler<which, true, false>},                    \
      {name ".NaN.f32", "2=22", Taint::kAll, kPickHandler<which, false, true>},                    \
      {name ".ftz.NaN.f32", "2=22", Taint::kAll, kPickHandler<which, true, true>},                 \
      {name ".xorsign.abs.f32", "2=22", Taint::kAll, f2<kPickXorsign<which, false, false>>},       \
      {name ".ftz.xorsign.abs.f32", "2=22", Taint::kAll, f2<kPickXorsign<which, true, false>>},    \
      {name ".NaN.xorsign.abs.f32", "2=22", Taint::kAll, f2<kPickXorsign<which, false, true>>},    \
      {name ".ftz.NaN.xorsign.abs.f32", "2=22", Taint::kAll, f2<kPickXorsign<which, true, true>>}, \
  {                                                                                                \
    name ".f64", "4=44", Taint::kAll, d2<kPick64<which>>                                           \
  }

#define KV_DIRECTED(mode, round)                                               \
  {"div." mode ".f32", "2=22", Taint::kAll, f2<kDivTo<round, false>>},         \
      {"div." mode ".ftz.f32", "2=22", Taint::kAll, f2<kDivTo<round, true>>},  \
      {"sqrt." mode ".f32", "2=2", Taint::kAll, f1<kSqrtTo<round, false>>},    \
      {"sqrt." mode ".ftz.f32", "2=2", Taint::kAll, f1<kSqrtTo<round, true>>}, \
      {"rcp." mode ".f32", "2=2", Taint::kAll,                                 \
       f1<[](float a) { return kDivTo<round, false>(1.0f, a); }>},             \
  {                                                                            \
    "rcp." mode ".ftz.f32", "2=2", Taint::kAll,                                \
        f1<[](float a) { return kDivTo<round, true>(1.0f, a); }>               \
  }

#define KV_APPROXIMATE(name, f)                               \
  {name ".f32", "2=2", Taint::kAll, approximate<f, false>}, { \
    name ".ftz.f32", "2=2", Taint::kAll, approximate<f, true> \
  }

constexpr FormRow kRows[] = {
    KV_ARITHMETIC("add", "2=22", f2, kAdd, kAddTo),
    KV_ARITHMETIC("sub", "2=22", f2, kSub, kSubTo),
    KV_ARITHMETIC("mul", "2=22", f2, kMul, kMulTo),
    KV_ARITHMETIC("{fma,mad}", "2=222", f3, kFma, kFmaTo),
    KV_MIN_MAX("min", Pick::kMin),
    KV_MIN_MAX("max", Pick::kMax),
    {"neg.f32", "2=2", Taint::kAll, unary32<kNeg<false>>},
    {"neg.ftz.f32", "2=2", Taint::kAll, unary32<kNeg<true>>},
    {"abs.f32", "2=2", Taint::kAll, unary32<kAbs<false>>},
    {"abs.ftz.f32", "2=2", Taint::kAll, unary32<kAbs<true>>},

    {"div.rn.f32", "2=22", Taint::kAll, f2<kDiv<false>>},
    {"div.rn.ftz.f32", "2=22", Taint::kAll, f2<kDiv<true>>},
    {"div.full.f32", "2=22", Taint::kAll, approximate_division<false, true>},
    {"div.full.ftz.f32", "2=22", Taint::kAll, approximate_division<true, true>},
    {"div.approx.f32", "2=22", Taint::kAll, approximate_division<false, false>},
    {"div.approx.ftz.f32", "2=22", Taint::kAll, approximate_division<true, false>},
    {"rcp.rn.f32", "2=2", Taint::kAll, f1<kRcp<false>>},
    {"rcp.rn.ftz.f32", "2=2", Taint::kAll, f1<kRcp<true>>},
    {"sqrt.rn.f32", "2=2", Taint::kAll, f1<kSqrt<false>>},
    {"sqrt.rn.ftz.f32", "2=2", Taint::kAll, f1<kSqrt<true>>},
    KV_DIRECTED("rz", Round::kZero),
    KV_DIRECTED("rm", Round::kDown),
    KV_DIRECTED("rp", Round::kUp),
    KV_APPROXIMATE("ex2.approx", Exp2),
    KV_APPROXIMATE("lg2.approx", Log2),
    KV_APPROXIMATE("rcp.approx", Reciprocal),
    KV_APPROXIMATE("rsqrt.approx", ReciprocalRoot),
    KV_APPROXIMATE("sqrt.approx", Root),
    KV_APPROXIMATE("tanh.approx", Tanh),
    KV_APPROXIMATE("sin.approx", Sine),
    KV_APPROXIMATE("cos.approx", Cosine),

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
    {"testp.finite.f32", "p=2", Taint::kAll, test_property, 32, 0},
    {"testp.infinite.f32", "p=2", Taint::kAll, test_property, 32, 1},
    {"testp.number.f32", "p=2", Taint::kAll, test_property, 32, 2},
    {"testp.notanumber.f32", "p=2", Taint::kAll, test_property, 32, 3},
    {"testp.normal.f32", "p=2", Taint::kAll, test_property, 32, 4},
    {"testp.subnormal.f32", "p=2", Taint::kAll, test_property, 32, 5},

    {"testp.finite.f64", "p=4", Taint::kAll, test_property64, 32, 0},
    {"testp.infinite.f64", "p=4", Taint::kAll, test_property64, 32, 1},
    {"testp.number.f64", "p=4", Taint::kAll, test_property64, 32, 2},
    {"testp.notanumber.f64", "p=4", Taint::kAll, test_property64, 32, 3},
    {"testp.normal.f64", "p=4", Taint::kAll, test_property64, 32, 4},
    {"testp.subnormal.f64", "p=4", Taint::kAll, test_property64, 32, 5},
    {"rcp.approx.ftz.f64", "4=4", Taint::kAll, d1<kRcp64>},
    {"rsqrt.approx.ftz.f64", "4=4", Taint::kAll, d1<kRsqrt64>},
    {"rsqrt.approx.f64", "4=4", Taint::kAll,
     d1<[](double a) { return canonical(1.0 / __builtin_sqrt(a)); }>},
    {"add{.rn,}.f64", "4=44", Taint::kAll, d2<[](double a, double b) { return canonical(a + b); }>},
    {"sub{.rn,}.f64", "4=44", Taint::kAll, d2<[](double a, double b) { return canonical(a - b); }>},
    {"mul{.rn,}.f64", "4=44", Taint::kAll, d2<[](double a, double b) { return canonical(a * b); }>},
    {"div.rn.f64", "4=44", Taint::kAll, d2<[](double a, double b) { return canonical(a / b); }>},
    {"{fma,mad}.rn.f64", "4=444", Taint::kAll,
     map3<[](double a, double b, double c) { return canonical(fma_exact(a, b, c)); }, u64, double,
          double, double>},
    {"rcp.rn.f64", "4=4", Taint::kAll, d1<[](double a) { return canonical(1.0 / a); }>},
    {"sqrt.rn.f64", "4=4", Taint::kAll, d1<[](double a) { return canonical(__builtin_sqrt(a)); }>},
    {"neg.f64", "4=4", Taint::kAll, unary64<[](u64 a) { return a ^ 0x8000000000000000; }>},
    {"abs.f64", "4=4", Taint::kAll, unary64<[](u64 a) { return a & 0x7fffffffffffffff; }>},
};

}  // namespace

FormRows float_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
