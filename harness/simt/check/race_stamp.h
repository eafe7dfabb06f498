// Purpose: what both race checks share: forced inlining and vectors of stamps.
// Contract: this header is included by code compiled for several instruction sets; every function
// in it and in its users is forced inline, so that no copy for AVX2 can be picked by the linker
// for the portable path.
#pragma once

#include <cstdint>
#include <cstring>

#define KV_INLINE [[gnu::always_inline]] inline

namespace kv::simt {

/// Four stamps. Comparisons give all ones or all zeros in each element.
typedef uint32_t Stamps __attribute__((vector_size(16)));

KV_INLINE Stamps load_stamps(const uint32_t* from) {
  Stamps v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
KV_INLINE void store_stamps(uint32_t* to, Stamps v) { __builtin_memcpy(to, &v, sizeof v); }
KV_INLINE Stamps all_stamps(uint32_t value) { return Stamps{value, value, value, value}; }
KV_INLINE bool any_set(Stamps v) {
#ifdef __SSE4_1__
  typedef long long Halves __attribute__((vector_size(16)));
  return !__builtin_ia32_ptestz128(Halves(v), Halves(v));
#endif
  uint64_t half[2];
  __builtin_memcpy(half, &v, sizeof v);
  return (half[0] | half[1]) != 0;
}

}  // namespace kv::simt
