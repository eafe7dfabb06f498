// Loads and stores, fast paths. A whole warp is checked at once: one range, one alignment, the
// definedness bits, the race stamps. Whatever does not pass goes lane by lane through
// slow_access(), which decides exactly and reports.
#include "harness/simt/exec/isa/place.h"

namespace kv::simt::KV_ISA {
namespace {

// --- data

template <int W>
struct Element {
  using Type = u64;
};
template <>
struct Element<1> {
  using Type = u8;
};
template <>
struct Element<2> {
  using Type = u16;
};
template <>
struct Element<4> {
  using Type = u32;
};

#ifdef __AVX512BW__
/// Four words of each lane, in vectors as wide as those that are loaded later.
KV_INLINE void fetch_quads(const Place& p, u32 (&t)[4][32]) {
  for (int l = 0; l < 32; l += 16) {
    Words quads[4];
    for (int k = 0; k < 4; ++k) {
      quads[k] = p.in_order ? _mm512_loadu_si512(p.base + p.off[l + 4 * k])
                            : four_quads(p.base, p.off + l + 4 * k);
    }
    for (int k = 0; k < 4; ++k) {
      const Words from = _mm512_add_epi32(_mm512_slli_epi32(lane_numbers(), 2), all_words(k));
      const Words low = _mm512_permutex2var_epi32(quads[0], from, quads[1]);
      const Words high = _mm512_permutex2var_epi32(quads[2], from, quads[3]);
      store_words(t[k] + l, _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1));
    }
  }
}
#endif

template <int W, int N>
KV_INLINE void fetch(Warp& w, const Ins* i, const Place& p) {
  using T = typename Element<W>::Type;
  using R = typename Element<(W < 4 ? 4 : W)>::Type;
  if (W >= 4 && N == 1 && p.in_order) {
    __builtin_memcpy(slot<R>(w, i->r[0]), p.base + p.off[0], W * 32);
    return;
  }
  if (N == 1 && w.write == ~0u) {
    R* d = slot<R>(w, i->r[0]);
#ifdef __AVX2__
    if constexpr (W == 4) {
      for (int l = 0; l < 32; l += 8) {
        const __m256i at = _mm256_load_si256(reinterpret_cast<const __m256i*>(p.off + l));
        _mm256_store_si256(reinterpret_cast<__m256i*>(d + l),
                           _mm256_i32gather_epi32(reinterpret_cast<const int*>(p.base), at, 1));
      }
      return;
    }
#endif
    for (int l = 0; l < 32; ++l) {
      T v;
      __builtin_memcpy(&v, p.base + p.off[l], W);
      d[l] = v;
    }
    return;
  }
  alignas(64) R t[N][32];
#if defined(__AVX512BW__)
  if constexpr (W == 4 && N == 4) {
    fetch_quads(p, t);
  } else
#elif defined(__SSE2__)
  if constexpr (W == 4 && N == 4) {
    for (int l = 0; l < 32; l += 4) {
      __m128 x0 = _mm_loadu_ps(reinterpret_cast<const float*>(p.base + p.off[l]));
      __m128 x1 = _mm_loadu_ps(reinterpret_cast<const float*>(p.base + p.off[l + 1]));
      __m128 x2 = _mm_loadu_ps(reinterpret_cast<const float*>(p.base + p.off[l + 2]));
      __m128 x3 = _mm_loadu_ps(reinterpret_cast<const float*>(p.base + p.off[l + 3]));
      _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
      _mm_store_ps(reinterpret_cast<float*>(t[0] + l), x0);
      _mm_store_ps(reinterpret_cast<float*>(t[1] + l), x1);
      _mm_store_ps(reinterpret_cast<float*>(t[2] + l), x2);
      _mm_store_ps(reinterpret_cast<float*>(t[3] + l), x3);
    }
  } else
#endif
  {
    for (int l = 0; l < 32; ++l) {
      T v[N];
      __builtin_memcpy(v, p.base + p.off[l], W * N);
      for (int k = 0; k < N; ++k) t[k][l] = v[k];
    }
  }
  for (int k = 0; k < N; ++k) blend(slot<R>(w, i->r[k]), t[k], w.write);
}

template <int W, int N>
KV_INLINE void deposit(Warp& w, const Ins* i, const Place& p) {
  using T = typename Element<W>::Type;
  using R = typename Element<(W < 4 ? 4 : W)>::Type;
  const R* s[N];
  for (int k = 0; k < N; ++k) s[k] = slot<R>(w, i->r[1 + k]);
  if (W >= 4 && N == 1 && p.in_order) {
    __builtin_memcpy(p.base + p.off[0], s[0], W * 32);
    return;
  }
#ifdef __SSE2__
  if constexpr (W == 4 && N == 4) {
    if (w.exec == ~0u) {
      for (int l = 0; l < 32; l += 4) {
        __m128 x0 = _mm_load_ps(reinterpret_cast<const float*>(s[0] + l));
        __m128 x1 = _mm_load_ps(reinterpret_cast<const float*>(s[1] + l));
        __m128 x2 = _mm_load_ps(reinterpret_cast<const float*>(s[2] + l));
        __m128 x3 = _mm_load_ps(reinterpret_cast<const float*>(s[3] + l));
        _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
        _mm_storeu_ps(reinterpret_cast<float*>(p.base + p.off[l]), x0);
        _mm_storeu_ps(reinterpret_cast<float*>(p.base + p.off[l + 1]), x1);
        _mm_storeu_ps(reinterpret_cast<float*>(p.base + p.off[l + 2]), x2);
        _mm_storeu_ps(reinterpret_cast<float*>(p.base + p.off[l + 3]), x3);
      }
      return;
    }
  }
#endif
  for (u32 mask = w.exec; mask; mask &= mask - 1) {
    const int l = __builtin_ctz(mask);
    T v[N];
    for (int k = 0; k < N; ++k) v[k] = T(s[k][l]);
    __builtin_memcpy(p.base + p.off[l], v, W * N);
  }
}

// --- handlers. The body is a function of its own: its locals escape into cold calls, which would
// keep the compiler from turning the step to the next instruction into a jump.

template <bool (*Try)(Warp&, const Ins*)>
KV_STEP attempt(Warp& w, const Ins* i) {
  if (!Try(w, i)) [[unlikely]]
    return slow_access(w, i);
  KV_NEXT(w, i + 1);
}

template <int W, int N>
KV_INLINE bool load_from(Warp& w, const Ins* i, const Place& p) {
  constexpr u32 kBytes = W * N;
  LaunchState& launch = *w.launch;
  if (launch.check_undefined && !(p.extent && (p.extent->flags & Extent::kDefined)) &&
      !all_defined<kBytes>(p)) {
    return false;
  }
  if (p.extent) {
    if (launch.check_global_race && global_race<kBytes, false>(w, p, w.exec)) return false;
  } else {
    if (launch.check_shared_race && shared_race<kBytes, false>(w, p, w.exec)) return false;
  }
  fetch<W, N>(w, i, p);
  return true;
}

template <int W, int N>
KV_INLINE bool store_to(Warp& w, const Ins* i, const Place& p) {
  constexpr u32 kBytes = W * N;
  LaunchState& launch = *w.launch;
  if (p.extent) {
    if (launch.check_global_race && global_race<kBytes, true>(w, p, w.exec)) return false;
    if (!(p.extent->flags & Extent::kDefined)) define<kBytes>(p, w.exec);
  } else {
    if (launch.check_shared_race && shared_race<kBytes, true>(w, p, w.exec)) return false;
    define<kBytes>(p, w.exec);
  }
  deposit<W, N>(w, i, p);
  return true;
}

template <int W, int N>
KV_ATTEMPT load_shared(Warp& w, const Ins* i) {
  Place p;
  return shared_place<W * N>(w, i, i->r[N], 0, w.exec, p) && load_from<W, N>(w, i, p);
}
template <int W, int N>
KV_ATTEMPT store_shared(Warp& w, const Ins* i) {
  Place p;
  return shared_place<W * N>(w, i, i->r[0], 0, w.exec, p) && store_to<W, N>(w, i, p);
}

template <int W, int N>
KV_ATTEMPT load_global(Warp& w, const Ins* i) {
  Place p;
  return i->mode == u8(AddressMode::kRegister64) &&
         global_place<W * N, false>(w, i->hint, slot<u64>(w, i->r[N]), u64(i->imm), w.exec, p) &&
         load_from<W, N>(w, i, p);
}
template <int W, int N>
KV_ATTEMPT store_global(Warp& w, const Ins* i) {
  Place p;
  return i->mode == u8(AddressMode::kRegister64) &&
         global_place<W * N, true>(w, i->hint, slot<u64>(w, i->r[0]), u64(i->imm), w.exec, p) &&
         store_to<W, N>(w, i, p);
}

/// Generic addresses: the window of the first lane decides; mixed warps go lane by lane.
template <int W, int N>
KV_ATTEMPT load_generic(Warp& w, const Ins* i) {
  Place p;
  bool done = false;
  if (i->mode == u8(AddressMode::kRegister64)) {
    const u64* a = slot<u64>(w, i->r[N]);
    const u64 first = a[__builtin_ctz(w.exec)] + u64(i->imm);
    if (first >= layout::kHeapBase) {
      done = global_place<W * N, false>(w, i->hint, a, u64(i->imm), w.exec, p) &&
             load_from<W, N>(w, i, p);
    } else if (first - layout::kSharedWindow < layout::kWindowBytes) {
      done = shared_place<W * N>(w, i, i->r[N], layout::kSharedWindow, w.exec, p) &&
             load_from<W, N>(w, i, p);
    }
  }
  return done;
}
template <int W, int N>
KV_ATTEMPT store_generic(Warp& w, const Ins* i) {
  Place p;
  bool done = false;
  if (i->mode == u8(AddressMode::kRegister64)) {
    const u64* a = slot<u64>(w, i->r[0]);
    const u64 first = a[__builtin_ctz(w.exec)] + u64(i->imm);
    if (first >= layout::kHeapBase) {
      done = global_place<W * N, true>(w, i->hint, a, u64(i->imm), w.exec, p) &&
             store_to<W, N>(w, i, p);
    } else if (first - layout::kSharedWindow < layout::kWindowBytes) {
      done = shared_place<W * N>(w, i, i->r[0], layout::kSharedWindow, w.exec, p) &&
             store_to<W, N>(w, i, p);
    }
  }
  return done;
}

/// Local memory at one address for all lanes: rows of 32 words.
template <int W, int N, bool kStore>
KV_INLINE bool local_row(Warp& w, const Ins* i) {
  constexpr u32 kWords = W < 4 ? 1 : W * N / 4;
  u64 at = u64(i->imm);
  const u16 address = i->r[kStore ? 0 : N];
  bool same = W >= 4;
  if (i->mode == u8(AddressMode::kRegister64)) {
    const u64* a = slot<u64>(w, address);
    const u64 first = a[__builtin_ctz(w.exec)];
    u64 wrong = 0;
    for (int l = 0; l < 32; ++l) wrong |= (w.exec & kLaneBit[l]) ? a[l] ^ first : 0;
    same &= wrong == 0;
    at += first;
  } else if (i->mode == u8(AddressMode::kRegister32)) {
    same = false;
  }
  if (!same || at % (W * N) || at / 4 + kWords > w.local_words) return false;
  u32* row = w.local + at / 4 * 32;
  u8* bits = w.local_bits + at / 4 * 16;
  if (kStore) {
    if (w.write == ~0u) {
      __builtin_memset(bits, 0xff, kWords * 16);
    } else {
      for (u32 k = 0; k < kWords * 32; ++k) {
        if (w.exec >> (k & 31) & 1) bits[k >> 1] |= u8(k & 1 ? 0xf0 : 0x0f);
      }
    }
  } else if (w.launch->check_undefined) {
    u32 missing = 0;
    for (u32 k = 0; k < kWords * 32; ++k) {
      const u32 nibble = bits[k >> 1] >> (k & 1 ? 4 : 0) & 15;
      missing |= (w.exec >> (k & 31) & 1) && nibble != 15;
    }
    if (missing) return false;
  }
  for (int k = 0; k < N; ++k) {
    if constexpr (W == 4) {
      u32* r = slot<u32>(w, i->r[kStore ? 1 + k : k]);
      kStore ? blend(row + 32 * k, r, w.exec) : blend(r, row + 32 * k, w.write);
    } else {
      u64* r = slot<u64>(w, i->r[kStore ? 1 + k : k]);
      u32* low = row + 64 * k;
      u32* high = low + 32;
      for (int l = 0; l < 32; ++l) {
        if (!((kStore ? w.exec : w.write) & kLaneBit[l])) continue;
        if (kStore) {
          low[l] = u32(r[l]);
          high[l] = u32(r[l] >> 32);
        } else {
          r[l] = low[l] | u64(high[l]) << 32;
        }
      }
    }
  }
  return true;
}

/// The address that all executing lanes give; false where they differ.
template <class T>
KV_INLINE bool common_address(const T* a, u32 mask, u64* address) {
  const T first = a[__builtin_ctz(mask)];
  T wrong = 0;
  KV_LANES wrong |= (mask & kLaneBit[l]) ? a[l] ^ first : 0;
  *address = first;
  return wrong == 0;
}

/// A kernel parameter: the same value for all lanes.
template <int W, int N>
KV_ATTEMPT load_parameter(Warp& w, const Ins* i) {
  using T = typename Element<W>::Type;
  using R = typename Element<(W < 4 ? 4 : W)>::Type;
  u64 at = 0;
  if (i->mode == u8(AddressMode::kRegister64)) {
    if (!common_address(slot<u64>(w, i->r[N]), w.exec, &at)) return false;
  } else if (i->mode == u8(AddressMode::kRegister32)) {
    if (!common_address(slot<u32>(w, i->r[N]), w.exec, &at)) return false;
  }
  at += u64(i->imm);
  if (i->mode == u8(AddressMode::kRegister32)) at = u32(at);
  if (at % (W * N) || at > w.launch->parameter_bytes ||
      w.launch->parameter_bytes - at < u64(W * N)) {
    return false;
  }
  T v[N];
  __builtin_memcpy(v, w.launch->parameters + at, W * N);
  for (int k = 0; k < N; ++k) {
    R* d = slot<R>(w, i->r[k]);
    const R value = v[k];
    if (w.write == ~0u) {
      KV_LANES d[l] = value;
    } else {
      KV_LANES d[l] = (w.write & kLaneBit[l]) ? value : d[l];
    }
  }
  return true;
}

KV_STEP always_slow(Warp& w, const Ins* i) { return slow_access(w, i); }

#define KV_SHAPE(space, W, N, load, store)                                 \
  {"~ld." space "." #W "." #N, "", Taint::kMemory, attempt<load<W, N>>}, { \
    "~st." space "." #W "." #N, "", Taint::kMemory, attempt<store<W, N>>   \
  }
#define KV_SPACE(space, load, store)                                          \
  KV_SHAPE(space, 1, 1, load, store), KV_SHAPE(space, 1, 2, load, store),     \
      KV_SHAPE(space, 1, 4, load, store), KV_SHAPE(space, 2, 1, load, store), \
      KV_SHAPE(space, 2, 2, load, store), KV_SHAPE(space, 2, 4, load, store), \
      KV_SHAPE(space, 4, 1, load, store), KV_SHAPE(space, 4, 2, load, store), \
      KV_SHAPE(space, 4, 4, load, store), KV_SHAPE(space, 8, 1, load, store), \
      KV_SHAPE(space, 8, 2, load, store)
#define KV_PARAMETER(W, N) \
  { "~ld.param." #W "." #N, "", Taint::kMemory, attempt<load_parameter<W, N>> }

template <int W, int N>
KV_ATTEMPT load_local(Warp& w, const Ins* i) {
  return W >= 4 && local_row<W, N, false>(w, i);
}
template <int W, int N>
KV_ATTEMPT store_local(Warp& w, const Ins* i) {
  return W >= 4 && local_row<W, N, true>(w, i);
}

constexpr FormRow kRows[] = {
    KV_SPACE("shared", load_shared, store_shared),
    KV_SPACE("global", load_global, store_global),
    KV_SPACE("generic", load_generic, store_generic),
    KV_SPACE("local", load_local, store_local),
    KV_PARAMETER(1, 1),
    KV_PARAMETER(1, 2),
    KV_PARAMETER(1, 4),
    KV_PARAMETER(2, 1),
    KV_PARAMETER(2, 2),
    KV_PARAMETER(2, 4),
    KV_PARAMETER(4, 1),
    KV_PARAMETER(4, 2),
    KV_PARAMETER(4, 4),
    KV_PARAMETER(8, 1),
    KV_PARAMETER(8, 2),
    // Strong, sign-extending and odd-shaped accesses, atomics: always lane by lane.
    {"~access", "", Taint::kMemory, always_slow},
};

}  // namespace

FormRows memory_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
