// Purpose: the source of both builds of BlockOps.
// Contract: included by block_ops_portable.cpp and block_ops_avx2.cpp alone. Everything is static
// (see lanes.h), and no standard library is used, lest an inline function of it be compiled with
// AVX2 and be called where there is none.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "reference/fast/block_ops.h"
#include "reference/fast/exponential.h"
#include "reference/fast/lanes.h"

namespace kv::reference {

using Floats = float __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(4)));

static const double kInfinite = __builtin_inf();

KV_LANES_INLINE LaneBits splat_bits(int64_t x) { return LaneBits{x, x, x, x}; }

KV_LANES_INLINE double largest_of(Lanes x) {
  return larger(larger(x[0], x[2]), larger(x[1], x[3]));
}

using Halves8 = uint16_t __attribute__((vector_size(16)));
using Words8 = uint32_t __attribute__((vector_size(32)));
using Floats8 = float __attribute__((vector_size(32)));

KV_LANES_INLINE void store_floats(double* out, Floats8 f) {
#ifdef __AVX2__
  _mm256_storeu_pd(out, _mm256_cvtps_pd(_mm256_castps256_ps128(f)));
  _mm256_storeu_pd(out + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(f, 1)));
#else
  store(out, __builtin_convertvector((Floats{f[0], f[1], f[2], f[3]}), Lanes));
  store(out + 4, __builtin_convertvector((Floats{f[4], f[5], f[6], f[7]}), Lanes));
#endif
}

// fp16 fields moved to float's, exactly: normal codes get the exponent rebased, subnormal ones are
// read as 2^-14 * 1.m minus 2^-14, which keeps slow subnormal arithmetic out of the loop.
KV_LANES_INLINE void decode8_f16(const std::byte* p, double* out) {
  Halves8 h;
  std::memcpy(&h, p, sizeof h);
#ifdef __F16C__
  store_floats(out, _mm256_cvtph_ps(reinterpret_cast<__m128i>(h)));
#else
  const Words8 bits = __builtin_convertvector(h, Words8);
  const Words8 code = bits & 0x7fff, moved = code << 13;
  const Words8 normal = moved + (112u << 23), special = moved | 0x7f800000u;
  const Floats8 shifted = reinterpret_cast<Floats8>(moved + (113u << 23)) - 0x1p-14f;
  const Words8 tiny = reinterpret_cast<Words8>(shifted);
  const Words8 value = code < 0x400 ? tiny : (code < 0x7c00 ? normal : special);
  store_floats(out, reinterpret_cast<Floats8>(value | ((bits & 0x8000) << 16)));
#endif
}

KV_LANES_INLINE void decode8_bf16(const std::byte* p, double* out) {
  Halves8 h;
  std::memcpy(&h, p, sizeof h);
  store_floats(out, reinterpret_cast<Floats8>(__builtin_convertvector(h, Words8) << 16));
}

KV_LANES_INLINE void decode8_f32(const std::byte* p, double* out) {
  Floats8 f;
  std::memcpy(&f, p, sizeof f);
  store_floats(out, f);
}

template <class Decode8>
KV_LANES_INLINE void decode_with(const DecodeArgs& a, const std::byte* row, double* out,
                                 Decode8 decode8) {
  const uint32_t bytes = dtype_bytes(a.dtype);
  uint32_t c = 0;
  for (; c + 8 <= a.dim; c += 8) decode8(row + size_t{c} * bytes, out + c);
  if (c < a.dim) {
    std::byte tail[32] = {};
    double decoded[8];
    std::memcpy(tail, row + size_t{c} * bytes, size_t{a.dim - c} * bytes);
    decode8(tail, decoded);
    for (uint32_t i = c; i < a.dim; ++i) out[i] = decoded[i - c];
  }
}

static void decode_one(const DecodeArgs& a, const std::byte* row, double* out) {
  switch (a.dtype) {
    case DType::kF16:
      return decode_with(a, row, out, decode8_f16);
    case DType::kBf16:
      return decode_with(a, row, out, decode8_bf16);
    case DType::kF32:
      return decode_with(a, row, out, decode8_f32);
    default:
      return decode_row(a.dtype, row, a.dim, out);
  }
}

// Sum of squares and largest magnitude, in chains that do not wait for each other.
static void measure(const DecodeArgs& a, uint32_t i, const double* row) {
  constexpr int kChains = 4;
  Lanes square[kChains], largest[kChains];
  LaneBits special = splat_bits(0);
  for (int k = 0; k < kChains; ++k) square[k] = largest[k] = splat(0);
  const auto take = [&](int k, Lanes x) __attribute__((always_inline)) {
    square[k] += x * x;
    largest[k] = larger(magnitude(x), largest[k]);
    special |= to_bits(x - x);  // 0 for finite numbers, NaN otherwise
  };
  uint32_t c = 0;
  for (; c + 4 * kChains <= a.stride; c += 4 * kChains) {
    for (int k = 0; k < kChains; ++k) take(k, load(row + c + 4 * k));
  }
  for (; c < a.stride; c += 4) take(0, load(row + c));
  const Lanes top = larger(larger(largest[0], largest[1]), larger(largest[2], largest[3]));
  a.square[i] = sum((square[0] + square[1]) + (square[2] + square[3]));
  const bool finite = (special[0] | special[1] | special[2] | special[3]) == 0;
  a.largest[i] = finite ? largest_of(top) : kInfinite;
}

static void decode(const DecodeArgs& a) {
  for (uint32_t i = 0; i < a.count; ++i) {
    double* out = a.out + size_t{i} * a.stride;
    for (uint32_t c = a.dim / 4 * 4; c < a.stride; ++c) out[c] = 0;
    if (a.rows[i] == nullptr) {
      for (uint32_t c = 0; c < a.stride; ++c) out[c] = 0;
    } else {
      decode_one(a, a.rows[i], out);
    }
    measure(a, i, out);
  }
}

// kRows x kKeys dot products at once. How many at once does not change any of them.
template <int kRows, int kKeys, bool kMagnitudes = false>
KV_LANES_INLINE void dots(const ScoreArgs& a, uint32_t row, uint32_t key) {
  const double* q[kRows];
  const double* k[kKeys];
  Lanes total[kRows][kKeys];
  for (int r = 0; r < kRows; ++r) q[r] = a.query + size_t{row + r} * a.stride;
  for (int i = 0; i < kKeys; ++i) k[i] = a.key + size_t{key + i} * a.stride;
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kKeys; ++i) total[r][i] = splat(0);
  }
  for (uint32_t c = 0; c < a.stride; c += 4) {
    Lanes x[kKeys];
    for (int i = 0; i < kKeys; ++i) x[i] = load(k[i] + c);
    for (int r = 0; r < kRows; ++r) {
      const Lanes y = load(q[r] + c);
      for (int i = 0; i < kKeys; ++i) {
        const Lanes product = x[i] * y;
        total[r][i] += kMagnitudes ? magnitude(product) : product;
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kKeys; ++i) a.out[(row + r) * a.out_stride + key + i] = sum(total[r][i]);
  }
}

template <int kRows, int kKeys, bool kMagnitudes>
static void score_rows(const ScoreArgs& a, uint32_t row) {
  uint32_t key = 0;
  for (; key + kKeys <= a.keys; key += kKeys) dots<kRows, kKeys, kMagnitudes>(a, row, key);
  for (; key < a.keys; ++key) dots<kRows, 1, kMagnitudes>(a, row, key);
}

template <bool kMagnitudes>
static void score_all(const ScoreArgs& a) {
  uint32_t row = 0;
  for (; row + 4 <= a.rows; row += 4) score_rows<4, 2, kMagnitudes>(a, row);
  for (; row + 2 <= a.rows; row += 2) score_rows<2, 4, kMagnitudes>(a, row);
  for (; row < a.rows; ++row) score_rows<1, 8, kMagnitudes>(a, row);
}

static void scores(const ScoreArgs& a) { score_all<false>(a); }
static void score_sizes(const ScoreArgs& a) { score_all<true>(a); }

KV_LANES_INLINE LaneBits visible4(const uint8_t* p) {
  Bytes bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(bytes, LaneBits) != 0;
}

// Logits in place of raw scores; -infinity where hidden.
static void logits(const WeightArgs& a, WeightSums& sums) {
  Lanes highest = splat(-kInfinite), farthest = splat(0);
  for (size_t i = 0; i < a.keys; i += 4) {
    Lanes x = load(a.scores + i) * a.scale;
    if (a.key_scale) x *= load(a.key_scale + i);
    if (a.softcap > 0) x = hyperbolic_tangent(x / a.softcap) * a.softcap;
    if (a.bias) x += load(a.bias + i);
    const LaneBits seen = visible4(a.visible + i);
    farthest = larger(select(seen, magnitude(x), splat(0)), farthest);
    x = select(seen, x, splat(-kInfinite));
    highest = larger(x, highest);
    store(a.scores + i, x);
    if (a.logits) store(a.logits + i, x);
  }
  sums.score_max = larger(a.extra_score, largest_of(highest));
  sums.score_abs = largest_of(farthest);
}

static WeightSums weights(const WeightArgs& a) {
  WeightSums sums;
  logits(a, sums);
  Lanes total = splat(0), rounded = splat(0);
  for (size_t i = 0; i < a.keys; i += 4) {
    const LaneBits seen = visible4(a.visible + i);
    const Lanes w = exp_nonpositive(load(a.scores + i) - sums.score_max);
    const Lanes rounding = select(seen, larger(w * a.relative, splat(a.absolute)), splat(0));
    total += w;
    rounded += rounding;
    store(a.scores + i, w);
    store(a.rounding + i, rounding + w * a.common);
  }
  sums.weights = sum(total);
  sums.rounding = sum(rounded);
  return sums;
}

// x >= 0 rounded to the grid, ties to even: beside a number whose last bit is the grid's unit at x,
// the addition rounds.
KV_LANES_INLINE Lanes on_grid(Lanes x, const RoundingGrid& grid) {
  constexpr int64_t kExponentBits = int64_t{0x7ff} << 52;
  const Lanes smallest = from_bits(splat_bits(int64_t{1023 + grid.exponent_min} << 52));
  const Lanes binade = larger(from_bits(to_bits(x) & splat_bits(kExponentBits)), smallest);
  const Lanes shift = from_bits(to_bits(binade) + (int64_t{52 - grid.mantissa} << 52)) * 1.5;
  const Lanes rounded = (x + shift) - shift;
  return select(rounded < grid.largest, rounded, splat(grid.largest));
}

static void round_weights(const RoundArgs& a) {
  const double unscale = 1 / a.scale;
  for (size_t i = 0; i < a.keys; i += 4) {
    const Lanes x = load(a.logits + i), maximum = load(a.maximums + i);
    const Lanes bias = a.bias ? load(a.bias + i) : splat(0);
    const LaneBits seen = x > splat(-kInfinite);
    const Lanes finite = select(seen, x, maximum);
    const Lanes sum = load(a.sizes + i) * a.scores + magnitude(finite - bias) * a.tanh +
                      magnitude(bias) * a.bias_error +
                      (magnitude(finite) + magnitude(maximum)) * a.argument +
                      (maximum - finite) * a.distance + a.fixed;
    const Lanes low = sum * (1 - 0x1p-20);
    const Lanes error = select(low < 0.5, low * (low + 1.0), splat(1));
    const Lanes weight = select(seen, exp_nonpositive(finite - maximum) * a.scale, splat(0));
    const Lanes least = on_grid(weight * (1.0 - error), a.grid);
    const Lanes most = on_grid(weight * (1.0 + error), a.grid);
    store(a.centre + i, (least + most) * (0.5 * unscale));
    store(a.radius + i, (most - least) * (0.5 * unscale));
    store(a.error + i, select(seen, error, splat(0)));
  }
}

// kRows rows by kColumns groups of four output dimensions; the sums run over keys in order.
template <int kRows, int kColumns>
KV_LANES_INLINE void accumulate_block(const AccumulateArgs& a, uint32_t row, uint32_t column) {
  Lanes output[kRows][kColumns], absolute[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int g = 0; g < kColumns; ++g) {
      const size_t at = size_t{row + r} * a.stride + column + 4 * g;
      output[r][g] = load(a.output + at);
      absolute[r][g] = load(a.absolute + at);
    }
  }
  const double* weight = a.weight + row * a.weight_stride;
  const double* rounding = a.rounding + row * a.weight_stride;
  const double* value = a.value + column;
  for (uint32_t i = 0; i < a.keys; ++i, value += a.stride) {
    Lanes v[kColumns];
    for (int g = 0; g < kColumns; ++g) v[g] = load(value + 4 * g);
    for (int r = 0; r < kRows; ++r) {
      const Lanes w = splat(weight[r * a.weight_stride + i]);
      const Lanes b = splat(rounding[r * a.weight_stride + i]);
      for (int g = 0; g < kColumns; ++g) {
        output[r][g] += w * v[g];
        absolute[r][g] += b * magnitude(v[g]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int g = 0; g < kColumns; ++g) {
      const size_t at = size_t{row + r} * a.stride + column + 4 * g;
      store(a.output + at, output[r][g]);
      store(a.absolute + at, absolute[r][g]);
    }
  }
}

static void accumulate(const AccumulateArgs& a) {
  uint32_t row = 0;
  for (; row + 2 <= a.rows; row += 2) {
    for (uint32_t column = 0; column < a.stride; column += 8) {
      accumulate_block<2, 2>(a, row, column);
    }
  }
  for (; row < a.rows; ++row) {
    uint32_t column = 0;
    for (; column + 16 <= a.stride; column += 16) accumulate_block<1, 4>(a, row, column);
    for (; column < a.stride; column += 8) accumulate_block<1, 2>(a, row, column);
  }
}

}  // namespace kv::reference
