// Purpose: 8-bit elements of a cache: e4m3, e5m2 (OCP 8-bit floats) and int8.
// Contract: decoding is exact. Encoding rounds to nearest, ties to even, and saturates: e4m3 at
// 448, e5m2 at 57344, int8 at 127 and -127; NaN becomes the format's NaN, and 0 in int8. Plain
// integer arithmetic, the same for every architecture; from sm_89 on encoding uses the hardware's
// conversion, which gives the same codes. The code 0 is the number 0 in every format.
#pragma once

#include "impl/kernels/params.h"
#include "impl/kernels/vector.cuh"

namespace kvattn {

/// An element of a cache of codes.
struct Code {
  uint8_t bits;
};

/// Two fp16 numbers in a word, as fp32 times `factor`.
__device__ inline void unpack_halves(uint32_t word, float factor, float& a, float& b) {
  asm("{ .reg .b16 low, high;\n"
      "  mov.b32 {low, high}, %2;\n"
      "  cvt.f32.f16 %0, low;\n"
      "  cvt.f32.f16 %1, high; }"
      : "=f"(a), "=f"(b)
      : "r"(word));
  a = __fmul_rn(a, factor);
  b = __fmul_rn(b, factor);
}

/// Four codes of a word, the lowest byte first. An e5m2 is the upper half of an fp16; an e4m3, its
/// exponent moved down by one bit, is an fp16 divided by 2^8.
__device__ inline void decode4(uint32_t word, CodeFormat format, float* x) {
  if (format == CodeFormat::kI8) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = static_cast<float>(static_cast<int32_t>(word << (24 - 8 * i)) >> 24);
    }
    return;
  }
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const uint32_t upper = __byte_perm(word, 0, pair == 0 ? 0x1404 : 0x3424);
    if (format == CodeFormat::kE5M2) {
      unpack_halves(upper, 1.0f, x[2 * pair], x[2 * pair + 1]);
    } else {
      const uint32_t halves = (upper & 0x80008000u) | (upper >> 1 & 0x3f803f80u);
      unpack_halves(halves, 256.0f, x[2 * pair], x[2 * pair + 1]);
    }
  }
}

__device__ inline Vec8 decode8(uint2 words, CodeFormat format) {
  Vec8 v;
  decode4(words.x, format, v.x);
  decode4(words.y, format, v.x + 4);
  return v;
}

/// How a kernel reads eight elements of its cache. Codes come without their scale.
template <class T>
__device__ inline Vec8 load_stored8(const T* p, const PagedParams&) {
  return load8(p);
}
__device__ inline Vec8 load_stored8(const Code* p, const PagedParams& cache) {
  return decode8(*reinterpret_cast<const uint2*>(p), cache.format);
}

/// Whether all slots of a KV head share a scale.
__device__ inline bool has_one_scale(const PagedParams& cache) {
  return cache.scale_page_stride == 0 && cache.scale_slot_stride == 0;
}

/// Where the scale of a slot's KV head lies.
__device__ inline int64_t scale_index(const PagedParams& cache, int64_t page, int64_t slot,
                                      int64_t head) {
  return page * cache.scale_page_stride + slot * cache.scale_slot_stride +
         head * cache.scale_head_stride;
}

/// An 8-bit float with kMantissa fraction bits.
template <int kMantissa, int kBias>
__device__ inline uint32_t encode_float(float x, float largest) {
  const uint32_t bits = __float_as_uint(x), sign = bits >> 24 & 0x80;
  const float size = fminf(fabsf(x), largest);
  if (x != x) return sign | 0x7f;
  constexpr int kDropped = 23 - kMantissa;
  constexpr uint32_t kNormal = 128 - kBias;  // biased exponent, in fp32, of the smallest normal
  const uint32_t magnitude = __float_as_uint(size);
  if (magnitude < kNormal << 23) {
    // The smallest subnormal is 2^(1 - bias - kMantissa); the sum may carry into the normals.
    const float quanta = __fmul_rn(size, static_cast<float>(1 << (kBias - 1 + kMantissa)));
    return sign | static_cast<uint32_t>(__float2int_rn(quanta));
  }
  const uint32_t odd = magnitude >> kDropped & 1;
  const uint32_t rounded = (magnitude + (1u << (kDropped - 1)) - 1 + odd) >> kDropped;
  return sign | (rounded - ((kNormal - 1) << kMantissa));
}

__device__ inline uint32_t encode(float x, CodeFormat format) {
  constexpr float kMaxE4M3 = 448, kMaxE5M2 = 57344, kMaxI8 = 127;
  if (format == CodeFormat::kE4M3) return encode_float<3, 7>(x, kMaxE4M3);
  if (format == CodeFormat::kE5M2) return encode_float<2, 15>(x, kMaxE5M2);
  const int32_t code = x == x ? __float2int_rn(fmaxf(fminf(x, kMaxI8), -kMaxI8)) : 0;
  return static_cast<uint32_t>(code) & 0xff;
}

/// The codes of (low, high), low in the lower byte.
__device__ inline uint32_t encode2(float low, float high, CodeFormat format) {
#if __CUDA_ARCH__ >= 890
  uint16_t pair = 0;
  if (format == CodeFormat::kE4M3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
  }
  if (format == CodeFormat::kE5M2) {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
  }
#endif
  return encode(low, format) | encode(high, format) << 8;
}

__device__ inline void store_codes8(void* p, const Vec8& v, CodeFormat format) {
  uint2 words;
  words.x = encode2(v.x[0], v.x[1], format) | encode2(v.x[2], v.x[3], format) << 16;
  words.y = encode2(v.x[4], v.x[5], format) | encode2(v.x[6], v.x[7], format) << 16;
  *static_cast<uint2*>(p) = words;
}

}  // namespace kvattn
