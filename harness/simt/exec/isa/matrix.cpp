// Matrix instructions: mma, ldmatrix, stmatrix, movmatrix. PTX ISA 9.0 section 9.7.14.
//
// Fragments of m16n8kK: lane l = 4 * g + t. A register holds e = 32 / bits elements. Register r of
// A holds row g + 8 * (r & 1), columns 4e * (r / 2) + e * t onwards; register r of B holds column
// g, rows 4e * r + e * t onwards; C and D hold rows g and g + 8, columns 2t and 2t + 1. So a
// register of A or B, as an array over lanes, is an 8 x 4e matrix, row by row.
//
// Default profile: c + sum over k ascending of the exact products, in double, rounded once. A
// product of two 16-bit or narrower floats, or of two tf32, is exact in double, so that a fused and
// a separate addition give the same bits.
#include "harness/simt/exec/isa/place.h"
#include "harness/simt/exec/math/approximate.h"
#include "harness/simt/exec/math/fma64.h"
#include "harness/simt/exec/math/tensor_core.h"

namespace kv::simt::KV_ISA {
namespace {

typedef double Four __attribute__((vector_size(32)));

KV_INLINE Four multiply_add(Four a, Four b, Four c) {
#ifdef __FMA__
  return Four(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}

// Element types: `row` widens one row of 4e elements of a register to doubles.
struct Half {
  static constexpr int kPerRegister = 2;
  KV_INLINE static void row(const u32* words, float* out) {
#ifdef __F16C__
    _mm256_store_ps(out, _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(words))));
#else
    for (int k = 0; k < 8; ++k) out[k] = half_value(words[k / 2] >> (16 * (k & 1)) & 0xffff);
#endif
  }
};
struct Bfloat {
  static constexpr int kPerRegister = 2;
  KV_INLINE static void row(const u32* words, float* out) {
    for (int k = 0; k < 4; ++k) {
      out[2 * k] = float_of(words[k] << 16);
      out[2 * k + 1] = float_of(words[k] & 0xffff0000);
    }
  }
};
struct Tf32 {
  static constexpr int kPerRegister = 1;
  KV_INLINE static void row(const u32* words, float* out) {
    for (int k = 0; k < 4; ++k) out[k] = float_of(words[k] & 0xffffe000);
  }
};
struct E4m3 {
  static constexpr int kPerRegister = 4;
  KV_INLINE static void row(const u32* words, float* out) {
    for (int k = 0; k < 16; ++k) out[k] = e4m3_value(words[k / 4] >> (8 * (k & 3)) & 255);
  }
};
struct E5m2 {
  static constexpr int kPerRegister = 4;
  KV_INLINE static void row(const u32* words, float* out) {
    for (int k = 0; k < 16; ++k) {
      out[k] = half_value((words[k / 4] >> (8 * (k & 3)) & 255) << 8);
    }
  }
};

/// A as 16 rows of K, B as K rows of 8.
template <class A, class B, int kK>
struct Operands {
  alignas(64) float a[16][kK];
  alignas(64) float b[kK][8];

  KV_INLINE void gather(Warp& w, const u16* r) {
    constexpr int kWide = 4 * A::kPerRegister;  // columns of one register
    constexpr int kBlocks = kK / kWide;
    for (int k = 0; k < 2 * kBlocks; ++k) {
      const u32* words = slot<u32>(w, r[k]);
      for (int g = 0; g < 8; ++g) A::row(words + 4 * g, &a[g + 8 * (k & 1)][kWide * (k / 2)]);
    }
    alignas(64) float column[kWide];
    for (int k = 0; k < kBlocks; ++k) {
      const u32* words = slot<u32>(w, r[2 * kBlocks + k]);
      for (int g = 0; g < 8; ++g) {
        B::row(words + 4 * g, column);
        for (int x = 0; x < kWide; ++x) b[kWide * k + x][g] = column[x];
      }
    }
  }
};

/// out = a * b + out, 16 x 8.
template <int kK>
KV_INLINE void multiply(const float (&a)[16][kK], const float (&b)[kK][8], double (&out)[16][8]) {
  alignas(64) double wide_b[kK][8];
  for (int k = 0; k < kK; ++k) {
    for (int n = 0; n < 8; ++n) wide_b[k][n] = double(b[k][n]);
  }
  alignas(64) double wide_a[16][kK];
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < kK; ++k) wide_a[m][k] = double(a[m][k]);
  }
  for (int m = 0; m < 16; m += 4) {
    Four acc[4][2];
    for (int x = 0; x < 4; ++x) {
      __builtin_memcpy(&acc[x][0], &out[m + x][0], 32);
      __builtin_memcpy(&acc[x][1], &out[m + x][4], 32);
    }
    for (int k = 0; k < kK; ++k) {
      Four b0, b1;
      __builtin_memcpy(&b0, &wide_b[k][0], 32);
      __builtin_memcpy(&b1, &wide_b[k][4], 32);
      for (int x = 0; x < 4; ++x) {
        const double s = wide_a[m + x][k];
        const Four all = {s, s, s, s};
        acc[x][0] = multiply_add(all, b0, acc[x][0]);
        acc[x][1] = multiply_add(all, b1, acc[x][1]);
      }
    }
    for (int x = 0; x < 4; ++x) {
      __builtin_memcpy(&out[m + x][0], &acc[x][0], 32);
      __builtin_memcpy(&out[m + x][4], &acc[x][1], 32);
    }
  }
}

/// The lanes of an .aligned instruction must all be here. Null: they are.
KV_INLINE const Ins* whole_warp(Warp& w, const Ins* i) {
  return w.write == ~0u ? nullptr : (~w.exec & ~w.dead) ? await_lanes(w, i, ~w.dead) : nullptr;
}

template <class A, class B, int kK, bool kHalfResult>
KV_ATTEMPT multiply_matrices(Warp& w, const Ins* i) {
  constexpr int kOut = kHalfResult ? 2 : 4;
  constexpr int kSources = kOut + 3 * kK / (4 * A::kPerRegister);
  Operands<A, B, kK> operands;
  operands.gather(w, i->r + kOut);
  alignas(64) double out[16][8];
  const u16* c = i->r + kSources;
  if (kHalfResult) {
    for (int k = 0; k < 2; ++k) {
      const u32* words = slot<u32>(w, c[k]);
      for (int l = 0; l < 32; ++l) {
        out[l / 4 + 8 * k][2 * (l & 3)] = double(half_value(words[l] & 0xffff));
        out[l / 4 + 8 * k][2 * (l & 3) + 1] = double(half_value(words[l] >> 16));
      }
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      const float* x = slot<float>(w, c[k]);
      for (int l = 0; l < 32; ++l) out[l / 4 + 8 * (k >> 1)][2 * (l & 3) + (k & 1)] = x[l];
    }
  }
  const u32 profile = w.launch->rounding;
  if (profile >= KV_SIMT_ROUNDING_MMA_AMPERE) [[unlikely]] {
    step_by_step<kK>(profile == KV_SIMT_ROUNDING_MMA_AMPERE, operands.a, operands.b, out);
  } else {
    multiply(operands.a, operands.b, out);
  }
  if (kHalfResult) {
    for (int k = 0; k < 2; ++k) {
      alignas(64) u32 t[32];
      for (int l = 0; l < 32; ++l) {
        const double* pair = &out[l / 4 + 8 * k][2 * (l & 3)];
        t[l] = double_to_half(pair[0], Round::kNearest) | double_to_half(pair[1], Round::kNearest)
                                                              << 16;
      }
      blend(slot<u32>(w, i->r[k]), t, w.write);
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      alignas(64) u32 t[32];
      for (int l = 0; l < 32; ++l) {
        t[l] = canonical(float(out[l / 4 + 8 * (k >> 1)][2 * (l & 3) + (k & 1)]));
      }
      blend(slot<u32>(w, i->r[k]), t, w.write);
    }
  }
  ++w.launch->counters->mma;
  return true;
}

template <bool kSigned, int kBits>
KV_INLINE s32 integer_element(u32 word, int index) {
  const u32 v = word >> (kBits * index) & ((1u << kBits) - 1);
  return kSigned ? s32(v << (32 - kBits)) >> (32 - kBits) : s32(v);
}

/// Integers of 8 or 4 bits; 32-bit accumulators that wrap or saturate. 8 or 16 rows.
template <bool kSignedA, bool kSignedB, int kBits, int kRows, int kK, bool kSaturate>
KV_ATTEMPT multiply_integers(Warp& w, const Ins* i) {
  constexpr int kPer = 32 / kBits, kWide = 4 * kPer, kBlocks = kK / kWide, kHalves = kRows / 8;
  constexpr int kOut = 2 * kHalves;
  s32 a[kRows][kK], b[8][kK];
  for (int k = 0; k < kHalves * kBlocks; ++k) {
    const u32* words = slot<u32>(w, i->r[kOut + k]);
    for (int x = 0; x < 8 * kWide; ++x) {
      a[x / kWide + 8 * (k % kHalves)][kWide * (k / kHalves) + x % kWide] =
          integer_element<kSignedA, kBits>(words[x / kPer], x % kPer);
    }
  }
  for (int k = 0; k < kBlocks; ++k) {
    const u32* words = slot<u32>(w, i->r[kOut + kHalves * kBlocks + k]);
    for (int x = 0; x < 8 * kWide; ++x) {
      b[x / kWide][kWide * k + x % kWide] =
          integer_element<kSignedB, kBits>(words[x / kPer], x % kPer);
    }
  }
  for (int k = 0; k < kOut; ++k) {
    const u32* c = slot<u32>(w, i->r[kOut + (kHalves + 1) * kBlocks + k]);
    alignas(64) u32 t[32];
    for (int l = 0; l < 32; ++l) {
      const s32* row = a[l / 4 + 8 * (k >> 1)];
      const s32* column = b[2 * (l & 3) + (k & 1)];
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
KV_ATTEMPT multiply_doubles(Warp& w, const Ins* i) {
  const double* a = slot<double>(w, i->r[2]);
  const double* b = slot<double>(w, i->r[3]);
  alignas(64) u64 t[2][32];
  for (int k = 0; k < 2; ++k) {
    const double* c = slot<double>(w, i->r[4 + k]);
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

template <bool (*Run)(Warp&, const Ins*)>
KV_STEP aligned(Warp& w, const Ins* i) {
  if (w.write != ~0u) [[unlikely]] {
    if (const Ins* other = whole_warp(w, i)) return other;
  }
  Run(w, i);
  KV_NEXT(w, i + 1);
}

/// Transposes an 8 x 8 matrix of 16-bit elements: row r is words[4 r .. 4 r + 3].
KV_INLINE void transpose(u32* words) {
#ifdef __SSE2__
  __m128i r[8], t[8], u[8];
  for (int k = 0; k < 8; ++k) r[k] = _mm_load_si128(reinterpret_cast<__m128i*>(words) + k);
  for (int k = 0; k < 4; ++k) {
    t[2 * k] = _mm_unpacklo_epi16(r[2 * k], r[2 * k + 1]);
    t[2 * k + 1] = _mm_unpackhi_epi16(r[2 * k], r[2 * k + 1]);
  }
  for (int h = 0; h < 2; ++h) {
    u[h * 4] = _mm_unpacklo_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 1] = _mm_unpackhi_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 2] = _mm_unpacklo_epi32(t[h * 4 + 1], t[h * 4 + 3]);
    u[h * 4 + 3] = _mm_unpackhi_epi32(t[h * 4 + 1], t[h * 4 + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    _mm_store_si128(reinterpret_cast<__m128i*>(words) + 2 * k, _mm_unpacklo_epi64(u[k], u[4 + k]));
    _mm_store_si128(reinterpret_cast<__m128i*>(words) + 2 * k + 1,
                    _mm_unpackhi_epi64(u[k], u[4 + k]));
  }
#else
  u16 in[64], out[64];
  __builtin_memcpy(in, words, 128);
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 8; ++c) out[c * 8 + r] = in[r * 8 + c];
  }
  __builtin_memcpy(words, out, 128);
#endif
}

/// Rows of 16 bytes at the addresses of lanes 0 .. 8 n - 1; matrix k goes to register k.
template <int kCount, bool kTranspose>
KV_ATTEMPT load_matrices(Warp& w, const Ins* i) {
  constexpr u32 kLanes = kCount == 4 ? ~0u : (1u << (8 * kCount)) - 1;
  if (w.write != ~0u || w.dead != 0) return false;
  Place p;
  const u64 window = i->space == u8(ptx::Space::kShared) ? 0 : layout::kSharedWindow;
  if (!shared_place<16>(w, i, i->r[kCount], window, kLanes, p)) return false;
  if (w.launch->check_undefined) {
    u32 all = 0xffff;
    for (int l = 0; l < 8 * kCount; ++l) all &= lane_bits<16>(p.bits, p.off[l]);
    if (all != 0xffff) return false;
  }
  if (w.launch->check_shared_race) {
    const u32 me = w.clock.base | WarpClock::kLanes, shift = w.launch->shared_shift;
    bool bad = false;
    for (int l = 0; l < 8 * kCount; ++l) {
      const u32 first = p.off[l] >> shift;
      for (u32 g = 0; g < 16u >> shift; g += 4) {
        bad |=
            read_four(p.writers + first + g, p.readers + first + g, all_stamps(me), w.clock.floor);
      }
    }
    if (bad) return false;
  }
  for (int k = 0; k < kCount; ++k) {
    u32* d = slot<u32>(w, i->r[k]);
    for (int r = 0; r < 8; ++r) __builtin_memcpy(d + 4 * r, p.base + p.off[8 * k + r], 16);
    if (kTranspose) transpose(d);
  }
  if (w.launch->collect) count_access(w, i, p.base, p.off, 16, true, false);
  return true;
}

template <bool (*Try)(Warp&, const Ins*)>
KV_STEP matrix_load(Warp& w, const Ins* i) {
  if (w.write != ~0u) [[unlikely]] {
    if (const Ins* other = whole_warp(w, i)) return other;
  }
  if (!Try(w, i)) [[unlikely]]
    return slow_matrix(w, i);
  KV_NEXT(w, i + 1);
}
KV_STEP matrix_slow(Warp& w, const Ins* i) {
  if (const Ins* other = whole_warp(w, i)) return other;
  return slow_matrix(w, i);
}

KV_ATTEMPT move_matrix(Warp& w, const Ins* i) {
  alignas(64) u32 t[32];
  __builtin_memcpy(t, slot<u32>(w, i->r[1]), 128);
  transpose(t);
  blend(slot<u32>(w, i->r[0]), t, w.write);
  return true;
}

#define KV_MMA(shape, types, A, B, K, half)                                           \
  {                                                                                   \
    "mma.sync.aligned." shape ".row.col" types, half ? "22" : "2222", Taint::kMatrix, \
        aligned<multiply_matrices<A, B, K, half>>                                     \
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
