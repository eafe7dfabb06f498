// Purpose: handlers made from a function of one lane.
// Contract: a handler reads all its sources before it writes a lane that another lane's source
// shares; registers of different names never share slots while both live. Lanes that do not
// execute keep their value; lanes that do not exist may be overwritten.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "harness/simt/exec/forms.h"
#include "harness/simt/exec/math/float.h"
#include "harness/simt/exec/warp.h"

#define KV_LANES _Pragma("GCC ivdep") for (int l = 0; l < 32; ++l)
#define KV_STEP static const Ins*

namespace kv::simt::KV_ISA {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

#if defined(__AVX512BW__)
/// As many words as a vector register holds.
using Words = __m512i;
KV_INLINE Words load_words(const u32* from) { return _mm512_load_si512(from); }
KV_INLINE void store_words(u32* to, Words v) { _mm512_store_si512(to, v); }
KV_INLINE Words all_words(u32 value) { return _mm512_set1_epi32(int(value)); }
KV_INLINE Words lane_numbers() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif defined(__AVX2__)
using Words = __m256i;
KV_INLINE Words load_words(const u32* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
KV_INLINE void store_words(u32* to, Words v) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), v);
}
#endif

/// Lanes of `mask` from `yes`, the others from `no`.
template <class T>
KV_INLINE void choose(T* to, const T* yes, const T* no, u32 mask) {
#ifdef __AVX512BW__
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  for (u32 l = 0; l < 32; l += 64 / sizeof(T)) {
    const __m512i x = _mm512_load_si512(no + l), y = _mm512_load_si512(yes + l);
    const __m512i z = sizeof(T) == 4 ? _mm512_mask_mov_epi32(x, __mmask16(mask >> l), y)
                                     : _mm512_mask_mov_epi64(x, __mmask8(mask >> l), y);
    _mm512_store_si512(to + l, z);
  }
#else
  KV_LANES to[l] = (mask & kLaneBit[l]) ? yes[l] : no[l];
#endif
}
/// Lanes of `mask` take the new value.
template <class T>
KV_INLINE void blend(T* to, const T* from, u32 mask) {
  choose(to, from, to, mask);
}

/// The top bits of 32 words as a mask.
KV_INLINE u32 top_bits(const u32* words) {
#if defined(__AVX512BW__)
  return u32(_mm512_movepi32_mask(load_words(words))) |
         u32(_mm512_movepi32_mask(load_words(words + 16))) << 16;
#elif defined(__AVX2__)
  u32 mask = 0;
  for (int k = 0; k < 4; ++k) {
    const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 8 * k));
    mask |= u32(u8(_mm256_movemask_ps(_mm256_castsi256_ps(v)))) << (8 * k);
  }
  return mask;
#elif defined(__SSE2__)
  u32 mask = 0;
  for (int k = 0; k < 8; ++k) {
    const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(words + 4 * k));
    mask |= u32(_mm_movemask_ps(_mm_castsi128_ps(v))) << (4 * k);
  }
  return mask;
#else
  u32 mask = 0;
  for (int l = 0; l < 32; ++l) mask |= words[l] >> 31 << l;
  return mask;
#endif
}

KV_INLINE void set_predicate(Warp& w, u16 index, u32 value) {
  u32& p = w.predicates[index];
  p = (p & ~w.exec) | (value & w.exec);
}

template <auto F, class D, class A>
KV_STEP map1(Warp& w, const Ins* i) {
  D* d = slot<D>(w, i->r[0]);
  const A* a = slot<A>(w, i->r[1]);
  if (w.write == ~0u) [[likely]] {
    KV_LANES d[l] = D(F(a[l]));
  } else {
    alignas(64) D t[32];
    KV_LANES t[l] = D(F(a[l]));
    blend(d, t, w.write);
  }
  KV_NEXT(w, i + 1);
}

template <auto F, class D, class A, class B>
KV_STEP map2(Warp& w, const Ins* i) {
  D* d = slot<D>(w, i->r[0]);
  const A* a = slot<A>(w, i->r[1]);
  const B* b = slot<B>(w, i->r[2]);
  if (w.write == ~0u) [[likely]] {
    KV_LANES d[l] = D(F(a[l], b[l]));
  } else {
    alignas(64) D t[32];
    KV_LANES t[l] = D(F(a[l], b[l]));
    blend(d, t, w.write);
  }
  KV_NEXT(w, i + 1);
}

#ifdef __AVX2__
/// A function of vectors of words instead of lanes.
template <auto F>
KV_STEP map_words2(Warp& w, const Ins* i) {
  u32* d = slot<u32>(w, i->r[0]);
  const u32* a = slot<u32>(w, i->r[1]);
  const u32* b = slot<u32>(w, i->r[2]);
  constexpr int kEach = sizeof(Words) / 4;
  if (w.write == ~0u) [[likely]] {
    for (int l = 0; l < 32; l += kEach) store_words(d + l, F(load_words(a + l), load_words(b + l)));
  } else {
    alignas(64) u32 t[32];
    for (int l = 0; l < 32; l += kEach) store_words(t + l, F(load_words(a + l), load_words(b + l)));
    blend(d, t, w.write);
  }
  KV_NEXT(w, i + 1);
}
#endif

template <auto F, class D, class A, class B, class C>
KV_STEP map3(Warp& w, const Ins* i) {
  D* d = slot<D>(w, i->r[0]);
  const A* a = slot<A>(w, i->r[1]);
  const B* b = slot<B>(w, i->r[2]);
  const C* c = slot<C>(w, i->r[3]);
  if (w.write == ~0u) [[likely]] {
    KV_LANES d[l] = D(F(a[l], b[l], c[l]));
  } else {
    alignas(64) D t[32];
    KV_LANES t[l] = D(F(a[l], b[l], c[l]));
    blend(d, t, w.write);
  }
  KV_NEXT(w, i + 1);
}

template <auto F, class D, class A, class B, class C, class E>
KV_STEP map4(Warp& w, const Ins* i) {
  D* d = slot<D>(w, i->r[0]);
  const A* a = slot<A>(w, i->r[1]);
  const B* b = slot<B>(w, i->r[2]);
  const C* c = slot<C>(w, i->r[3]);
  const E* e = slot<E>(w, i->r[4]);
  alignas(64) D t[32];
  KV_LANES t[l] = D(F(a[l], b[l], c[l], e[l]));
  blend(d, t, w.write);
  KV_NEXT(w, i + 1);
}

/// Sets a predicate.
template <auto F, class A>
KV_STEP compare(Warp& w, const Ins* i) {
  const A* a = slot<A>(w, i->r[1]);
  const A* b = slot<A>(w, i->r[2]);
  alignas(64) u32 t[32];
  KV_LANES t[l] = F(a[l], b[l]) ? ~0u : 0u;
  set_predicate(w, i->r[0], top_bits(t));
  KV_NEXT(w, i + 1);
}

/// `set`: all ones (or 1.0) in a register.
template <auto F, class A, u32 kTrue>
KV_STEP compare_to_register(Warp& w, const Ins* i) {
  u32* d = slot<u32>(w, i->r[0]);
  const A* a = slot<A>(w, i->r[1]);
  const A* b = slot<A>(w, i->r[2]);
  alignas(64) u32 t[32];
  KV_LANES t[l] = F(a[l], b[l]) ? kTrue : 0u;
  blend(d, t, w.write);
  KV_NEXT(w, i + 1);
}

template <class T>
KV_STEP select(Warp& w, const Ins* i) {
  T* d = slot<T>(w, i->r[0]);
  const T* a = slot<T>(w, i->r[1]);
  const T* b = slot<T>(w, i->r[2]);
  const u32 p = w.predicates[i->r[3]];
  if (w.write == ~0u) [[likely]] {
    choose(d, a, b, p);
  } else {
    alignas(64) T t[32];
    choose(t, a, b, p);
    blend(d, t, w.write);
  }
  KV_NEXT(w, i + 1);
}

// Shorthands for the tables.
template <auto F>
inline constexpr Handler unary32 = map1<F, u32, u32>;
template <auto F>
inline constexpr Handler binary32 = map2<F, u32, u32, u32>;
template <auto F>
inline constexpr Handler ternary32 = map3<F, u32, u32, u32, u32>;
template <auto F>
inline constexpr Handler unary64 = map1<F, u64, u64>;
template <auto F>
inline constexpr Handler binary64 = map2<F, u64, u64, u64>;
template <auto F>
inline constexpr Handler ternary64 = map3<F, u64, u64, u64, u64>;

template <size_t kCount>
constexpr FormRows rows_of(const FormRow (&rows)[kCount]) {
  return {rows, kCount};
}

}  // namespace

FormRows integer_forms();
FormRows logic_forms();
FormRows float_forms();
FormRows half_forms();
FormRows convert_forms();
FormRows memory_forms();
FormRows matrix_forms();
FormRows lane_forms();
FormRows async_copy_forms();

}  // namespace kv::simt::KV_ISA
