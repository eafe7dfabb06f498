// f64 in directed rounding modes: add, sub, mul, fma, div, rcp, sqrt. The base instruction set
// rounds as the control register says; the operations below are made one at a time under it.
#include "harness/simt/exec/forms.h"
#include "harness/simt/exec/math/fma64.h"
#include "harness/simt/exec/warp.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace kv::simt {
namespace {

using namespace KV_ISA;

enum Operation : uint8_t { kAdd, kSub, kMul, kDiv, kRcp, kSqrt };

#if defined(__SSE2__)
class RoundingMode {
 public:
  explicit RoundingMode(Round mode) : saved_(_mm_getcsr()) {
    static constexpr uint32_t kBits[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN,
                                         _MM_ROUND_UP};
    _mm_setcsr((saved_ & ~uint32_t{_MM_ROUND_MASK}) | kBits[int(mode)]);
  }
  ~RoundingMode() { _mm_setcsr(saved_); }

 private:
  uint32_t saved_;
};

/// The assembly keeps the compiler from computing ahead of the change of mode.
double operate(Operation what, Round mode, double a, double b) {
  const RoundingMode scope(mode);
  double r = a;
  switch (what) {
    case kAdd:
      asm volatile("addsd %1, %0" : "+x"(r) : "x"(b));
      break;
    case kSub:
      asm volatile("subsd %1, %0" : "+x"(r) : "x"(b));
      break;
    case kMul:
      asm volatile("mulsd %1, %0" : "+x"(r) : "x"(b));
      break;
    case kDiv:
      asm volatile("divsd %1, %0" : "+x"(r) : "x"(b));
      break;
    case kRcp:
      r = 1.0;
      asm volatile("divsd %1, %0" : "+x"(r) : "x"(a));
      break;
    case kSqrt:
      asm volatile("sqrtsd %1, %0" : "=x"(r) : "x"(a));
      break;
  }
  return r;
}
#else
#error "directed rounding of f64 needs SSE2"
#endif

template <Operation kWhat, Round kMode>
const Ins* directed(Warp& w, const Ins* i) {
  const bool unary = kWhat == kRcp || kWhat == kSqrt;
  for (uint32_t m = w.exec; m; m &= m - 1) {
    const int l = __builtin_ctz(m);
    const double a = slot<double>(w, i->r[1])[l];
    const double b = unary ? 0 : slot<double>(w, i->r[2])[l];
    slot<uint64_t>(w, i->r[0])[l] = canonical(operate(kWhat, kMode, a, b));
  }
  KV_NEXT(w, i + 1);
}

template <Round kMode>
const Ins* directed_fma(Warp& w, const Ins* i) {
  for (uint32_t m = w.exec; m; m &= m - 1) {
    const int l = __builtin_ctz(m);
    slot<uint64_t>(w, i->r[0])[l] =
        canonical(fma_in_mode(slot<double>(w, i->r[1])[l], slot<double>(w, i->r[2])[l],
                              slot<double>(w, i->r[3])[l], kMode));
  }
  KV_NEXT(w, i + 1);
}

#define KV_DIRECTED(mode, round)                                           \
  {"add." mode ".f64", "4=44", Taint::kAll, directed<kAdd, round>},        \
      {"sub." mode ".f64", "4=44", Taint::kAll, directed<kSub, round>},    \
      {"mul." mode ".f64", "4=44", Taint::kAll, directed<kMul, round>},    \
      {"div." mode ".f64", "4=44", Taint::kAll, directed<kDiv, round>},    \
      {"rcp." mode ".f64", "4=4", Taint::kAll, directed<kRcp, round>},     \
      {"sqrt." mode ".f64", "4=4", Taint::kAll, directed<kSqrt, round>}, { \
    "{fma,mad}." mode ".f64", "4=444", Taint::kAll, directed_fma<round>    \
  }

constexpr FormRow kRows[] = {
    KV_DIRECTED("rz", Round::kZero),
    KV_DIRECTED("rm", Round::kDown),
    KV_DIRECTED("rp", Round::kUp),
};

}  // namespace

FormRows directed64_forms() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace kv::simt
