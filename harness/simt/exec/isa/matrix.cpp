// Matrix instructions: mma, ldmatrix, stmatrix, movmatrix. PTX ISA 9.0
// section 9.7.14.
//
// Default profile: c + sum over k ascending of the exact products, in double,
// rounded once (product.h, with the layout of fragments).
#include "harness/simt/exec/isa/place.h"
#include "harness/simt/exec/isa/product.h"
#include "harness/simt/exec/isa/product512.h"
#include "harness/simt/exec/math/approximate.h"
#include "harness/simt/exec/math/fma64.h"

namespace kv::simt::KV_ISA {
namespace {

/// The lanes of an .aligned instruction must all be here. Null: they are.
KV_INLINE const Ins *whole_warp(Warp &w, const Ins *i) {
  return w.write == ~0u ? nullptr : (~w.exec & ~w.dead) ? await_lanes(w, i, ~w.dead) : nullptr;
}

template <class A, class B, int kK, class Sums>
KV_ATTEMPT multiply_matrices(Warp &w, const Ins *i) {
  constexpr int kOut = Sums::kRegisters, kOfA = 2 * kK / (4 * A::kPerRegister);
  const u16 *r = i->r + kOut;
  const MatrixMemo &memo = rows_of_a<A, kK>(w, r);
  alignas(64) double b[kK][8];
  columns_of_b<B, kK>(w, r + kOfA, b);
  Sums sums;
  for (int k = 0; k < kOut; ++k) sums.c[k] = slot<float>(w, r[kOfA + kOfA / 2 + k]);
  const u32 profile = w.launch->rounding;
  if (profile >= KV_SIMT_ROUNDING_MMA_AMPERE) [[unlikely]] {
    multiply_by_steps<kK>(profile == KV_SIMT_ROUNDING_MMA_AMPERE, memo, b, sums);
  } else {
    multiply<kK>(memo, b, sums);
  }
  for (int k = 0; k < kOut; ++k) {
    u32 *const to = slot<u32>(w, i->r[k]);
    u32 *const from = sums.d[k];
    if (w.write == ~0u) {
      for (int l = 0; l < 32; l += 4) Sums::finish(from + l, to + l);
    } else {
      for (int l = 0; l < 32; l += 4) Sums::finish(from + l, from + l);
      blend(to, from, w.write);
    }
  }
  ++w.launch->counters->mma;
  return true;
}

#ifdef __AVX512BW__
template <class A, class B, int kK>
KV_ATTEMPT multiply_matrices_wide(Warp &w, const Ins *i) {
  if (w.launch->rounding >= KV_SIMT_ROUNDING_MMA_AMPERE) [[unlikely]] {
    return multiply_matrices<A, B, kK, FloatSums>(w, i);
  }
  ++w.launch->counters->mma;
  multiply_wide<A, B, kK>(w, i->r);
  return true;
}
#endif

template <class A, class B, int kK, class Sums>
constexpr bool (*attempt_of())(Warp &, const Ins *) {
#ifdef __AVX512BW__
  if constexpr (std::is_same_v<Sums, FloatSums> && A::kPerRegister == 2) {
    return multiply_matrices_wide<A, B, kK>;
  }
#endif
  return multiply_matrices<A, B, kK, Sums>;
}

template <bool kSigned, int kBits>
KV_INLINE s32 integer_element(u32 word, int index) {
  const u32 v = word >> (kBits * index) & ((1u << kBits) - 1);
  return kSigned ? s32(v << (32 - kBits)) >> (32 - kBits) : s32(v);
}

/// Integers of 8 or 4 bits; 32-bit accumulators that wrap or saturate. 8 or 16
/// rows.
template <bool kSignedA, bool kSignedB, int kBits, int kRows, int kK, bool kSaturate>
KV_ATTEMPT multiply_integers(Warp &w, const Ins *i) {
  constexpr int kPer = 32 / kBits, kWide = 4 * kPer, kBlocks = kK / kWide, kHalves = kRows / 8;
  constexpr int kOut = 2 * kHalves;
  s32 a[kRows][kK], b[8][kK];
  for (int k = 0; k < kHalves * kBlocks; ++k) {
    const u32 *words = slot<u32>(w, i->r[kOut + k]);
    for (int x = 0; x < 8 * kWide; ++x) {
      a[x / kWide + 8 * (k % kHalves)][kWide * (k / kHalves) + x % kWide] =
          integer_element<kSignedA, kBits>(words[x / kPer], x % kPer);
    }
  }
  for (int k = 0; k < kBlocks; ++k) {
    const u32 *words = slot<u32>(w, i->r[kOut + kHalves * kBlocks + k]);
    for (int x = 0; x < 8 * kWide; ++x) {
      b[x / kWide][kWide * k + x % kWide] =
          integer_element<kSignedB, kBits>(words[x / kPer], x % kPer);
    }
  }
  for (int k = 0; k < kOut; ++k) {
    const u32 *c = slot<u32>(w, i->r[kOut + (kHalves + 1) * kBlocks + k]);
    alignas(64) u32 t[32];
    for (int l = 0; l < 32; ++l) {
      const s32 *row = a[l / 4 + 8 * (k >> 1)];
      const s32 *column = b[2 * (l & 3) + (k & 1)];
      s64 sum = s32(c[l]);
      for (int x = 0; x < kK; ++x) sum += row[x] * column[x];
      const s64 top = 0x7fffffffll;
      if (kSaturate) sum = sum > top ? top : sum < -top - 1 ? -top - 1 : sum;
      t[l] = u32(sum);
    }
    blend(slot<u32>(w, i->r[k]), t, w.write);
  }
  ++w.launch->counters->mma;
  return true;
}

/// m8n8k4 of doubles: a chain of fused multiply-adds, k ascending.
KV_ATTEMPT multiply_doubles(Warp &w, const Ins *i) {
  const double *a = slot<double>(w, i->r[2]);
  const double *b = slot<double>(w, i->r[3]);
  alignas(64) u64 t[2][32];
  for (int k = 0; k < 2; ++k) {
    const double *c = slot<double>(w, i->r[4 + k]);
    for (int l = 0; l < 32; ++l) {
      const int row = l / 4, column = 2 * (l & 3) + k;
      double sum = c[l];
      for (int x = 0; x < 4; ++x) sum = fma_exact(a[4 * row + x], b[4 * column + x], sum);
      t[k][l] = canonical(sum);
    }
  }
  for (int k = 0; k < 2; ++k) blend(slot<u64>(w, i->r[k]), t[k], w.write);
  ++w.launch->counters->mma;
  return true;
}

template <bool (*Run)(Warp &, const Ins *)>
KV_STEP aligned(Warp &w, const Ins *i) {
  if (w.write != ~0u) [[unlikely]] {
    if (const Ins *other = whole_warp(w, i)) return other;
  }
  Run(w, i);
  KV_NEXT(w, i + 1);
}

/// Eight rows of 16 bytes. Vectors are as wide as those that will be loaded from `d`: else a load
/// would have to wait for the stores.
KV_INLINE void fetch_rows(const u8 *base, const u32 *off, u32 *d) {
#ifdef __AVX512BW__
  store_words(d, four_quads(base, off));
  store_words(d + 16, four_quads(base, off + 4));
#else
  for (int r = 0; r < 8; ++r) __builtin_memcpy(d + 4 * r, base + off[r], 16);
#endif
}

/// Lanes 0 .. kLanes - 1 read 16 bytes each, for all lanes. True: suspicious.
template <int kLanes>
KV_INLINE bool matrix_race(Warp &w, const Place &p) {
  const u32 me = w.clock.base | WarpClock::kLanes;
#ifdef __AVX512BW__
  if (settle_scattered<false, kLanes, false>(w, p.shared_chunks, p.off)) return false;
#endif
  bool bad = false;
  for (int l = 0; l < kLanes; ++l) bad |= shared_chunk_race<false>(w, p, p.off[l], me);
  return bad;
}

/// Rows of 16 bytes at the addresses of lanes 0 .. 8 n - 1; matrix k goes to
/// register k.
template <int kCount, bool kTranspose>
KV_ATTEMPT load_matrices(Warp &w, const Ins *i) {
  constexpr u32 kLanes = kCount == 4 ? ~0u : (1u << (8 * kCount)) - 1;
  if (w.write != ~0u || w.dead != 0) return false;
  Place p;
  const u64 window = i->space == u8(ptx::Space::kShared) ? 0 : layout::kSharedWindow;
  if (!shared_place<16, false>(w, i, i->r[kCount], window, kLanes, p)) return false;
  if (w.launch->check_undefined) {
    u32 all = 0xffff;
    for (int l = 0; l < 8 * kCount; ++l) all &= lane_bits<16>(p.bits, p.off[l]);
    if (all != 0xffff) return false;
  }
  if (w.launch->check_shared_race && matrix_race<8 * kCount>(w, p)) return false;
  for (int k = 0; k < kCount; ++k) {
    u32 *d = slot<u32>(w, i->r[k]);
    fetch_rows(p.base, p.off + 8 * k, d);
    if (kTranspose) transpose(d);
  }
  return true;
}

template <bool (*Try)(Warp &, const Ins *)>
KV_STEP matrix_load(Warp &w, const Ins *i) {
  if (w.write != ~0u) [[unlikely]] {
    if (const Ins *other = whole_warp(w, i)) return other;
  }
  if (!Try(w, i)) [[unlikely]]
    return slow_matrix(w, i);
  KV_NEXT(w, i + 1);
}
KV_STEP matrix_slow(Warp &w, const Ins *i) {
  if (const Ins *other = whole_warp(w, i)) return other;
  return slow_matrix(w, i);
}

KV_ATTEMPT move_matrix(Warp &w, const Ins *i) {
  alignas(64) u32 t[32];
  __builtin_memcpy(t, slot<u32>(w, i->r[1]), 128);
  transpose(t);
  blend(slot<u32>(w, i->r[0]), t, w.write);
  return true;
}

#define KV_MMA(shape, types, A, B, K, half)                                           \
  {                                                                                   \
    "mma.sync.aligned." shape ".row.col" types, half ? "22" : "2222", Taint::kMatrix, \
        aligned<attempt_of<A, B, K, std::conditional_t<half, HalfSums, FloatSums>>()> \
  }
#define KV_INTEGER_ONE(shape, rows, K, bits, sat, on, a, b, signed_a, signed_b)                 \
  {                                                                                             \
    "mma.sync.aligned." shape ".row.col" sat ".s32." a "." b ".s32", rows == 8 ? "22" : "2222", \
        Taint::kMatrix, aligned<multiply_integers<signed_a, signed_b, bits, rows, K, on>>       \
  }
#define KV_INTEGER_MMA(shape, rows, K, bits, s, u)                                 \
  KV_INTEGER_ONE(shape, rows, K, bits, "", false, s, s, true, true),               \
      KV_INTEGER_ONE(shape, rows, K, bits, "", false, s, u, true, false),          \
      KV_INTEGER_ONE(shape, rows, K, bits, "", false, u, s, false, true),          \
      KV_INTEGER_ONE(shape, rows, K, bits, "", false, u, u, false, false),         \
      KV_INTEGER_ONE(shape, rows, K, bits, ".satfinite", true, s, s, true, true),  \
      KV_INTEGER_ONE(shape, rows, K, bits, ".satfinite", true, s, u, true, false), \
      KV_INTEGER_ONE(shape, rows, K, bits, ".satfinite", true, u, s, false, true), \
      KV_INTEGER_ONE(shape, rows, K, bits, ".satfinite", true, u, u, false, false)
#define KV_EIGHT_BIT(shape, K, result, half)                               \
  KV_MMA(shape, "." result ".e4m3.e4m3." result, E4m3, E4m3, K, half),     \
      KV_MMA(shape, "." result ".e5m2.e5m2." result, E5m2, E5m2, K, half), \
      KV_MMA(shape, "." result ".e4m3.e5m2." result, E4m3, E5m2, K, half), \
      KV_MMA(shape, "." result ".e5m2.e4m3." result, E5m2, E4m3, K, half)
#define KV_LDMATRIX(n, count)                                                            \
  {"~ldmatrix." n, "", Taint::kMemory, matrix_load<load_matrices<count, false>>}, {      \
    "~ldmatrix." n ".trans", "", Taint::kMemory, matrix_load<load_matrices<count, true>> \
  }

constexpr FormRow kRows[] = {
    KV_MMA("m16n8k16", ".f32.f16.f16.f32", Half, Half, 16, false),
    KV_MMA("m16n8k16", ".f16.f16.f16.f16", Half, Half, 16, true),
    KV_MMA("m16n8k16", ".f32.bf16.bf16.f32", Bfloat, Bfloat, 16, false),
    KV_MMA("m16n8k8", ".f32.f16.f16.f32", Half, Half, 8, false),
    KV_MMA("m16n8k8", ".f16.f16.f16.f16", Half, Half, 8, true),
    KV_MMA("m16n8k8", ".f32.bf16.bf16.f32", Bfloat, Bfloat, 8, false),
    KV_MMA("m16n8k8", ".f32.tf32.tf32.f32", Tf32, Tf32, 8, false),
    KV_MMA("m16n8k4", ".f32.tf32.tf32.f32", Tf32, Tf32, 4, false),
    KV_EIGHT_BIT("m16n8k32", 32, "f32", false),
    KV_EIGHT_BIT("m16n8k32", 32, "f16", true),
    KV_EIGHT_BIT("m16n8k16", 16, "f32", false),
    KV_EIGHT_BIT("m16n8k16", 16, "f16", true),
    KV_INTEGER_MMA("m16n8k32", 16, 32, 8, "s8", "u8"),
    KV_INTEGER_MMA("m16n8k16", 16, 16, 8, "s8", "u8"),
    KV_INTEGER_MMA("m8n8k16", 8, 16, 8, "s8", "u8"),
    KV_INTEGER_MMA("m16n8k64", 16, 64, 4, "s4", "u4"),
    KV_INTEGER_MMA("m16n8k32", 16, 32, 4, "s4", "u4"),
    KV_INTEGER_MMA("m8n8k32", 8, 32, 4, "s4", "u4"),
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "44", Taint::kMatrix,
     aligned<multiply_doubles>},
    KV_LDMATRIX("x1", 1),
    KV_LDMATRIX("x2", 2),
    KV_LDMATRIX("x4", 4),
    {"~stmatrix", "", Taint::kMemory, matrix_slow},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "2=2", Taint::kMatrixMove, aligned<move_matrix>},
};

}  // namespace

FormRows matrix_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
