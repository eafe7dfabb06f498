// Purpose: four doubles at a time, with the same bits whatever instructions they become.
// Contract: only element-wise IEEE operations and sums in a fixed order. The compiler lowers Lanes
// to one AVX register or to two SSE2 registers; neither changes a result, because nothing here is
// contracted or reassociated. Everything is `static`: two translation units with different
// instruction sets include this file and must not share a function.
#pragma once

#include <cstdint>
#include <cstring>

namespace kv::reference {

using Lanes = double __attribute__((vector_size(32)));
using LaneBits = int64_t __attribute__((vector_size(32)));

#define KV_LANES_INLINE static inline __attribute__((always_inline))

KV_LANES_INLINE Lanes splat(double x) { return Lanes{x, x, x, x}; }
KV_LANES_INLINE Lanes load(const double* p) {
  Lanes x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
KV_LANES_INLINE void store(double* p, Lanes x) { std::memcpy(p, &x, sizeof x); }

KV_LANES_INLINE LaneBits to_bits(Lanes x) { return reinterpret_cast<LaneBits>(x); }
KV_LANES_INLINE Lanes from_bits(LaneBits x) { return reinterpret_cast<Lanes>(x); }
KV_LANES_INLINE Lanes select(LaneBits mask, Lanes a, Lanes b) { return mask ? a : b; }
KV_LANES_INLINE Lanes larger(Lanes a, Lanes b) { return select(a > b, a, b); }
KV_LANES_INLINE Lanes magnitude(Lanes x) {
  return from_bits(to_bits(x) & LaneBits{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX});
}
/// x in the shape of the second argument, whose value does not matter.
KV_LANES_INLINE Lanes broadcast(double x, Lanes) { return splat(x); }
/// The one order in which four lanes are ever added.
KV_LANES_INLINE double sum(Lanes x) { return (x[0] + x[2]) + (x[1] + x[3]); }

// The same names for one double, so that one algorithm serves both.
KV_LANES_INLINE double broadcast(double x, double) { return x; }
KV_LANES_INLINE int64_t to_bits(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
KV_LANES_INLINE double from_bits(int64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
KV_LANES_INLINE double select(bool mask, double a, double b) { return mask ? a : b; }
KV_LANES_INLINE double larger(double a, double b) { return a > b ? a : b; }
KV_LANES_INLINE double magnitude(double x) { return from_bits(to_bits(x) & INT64_MAX); }

}  // namespace kv::reference
