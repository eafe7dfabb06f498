// Purpose: eight consecutive elements as fp32, the unit in which the kernels read and write rows.
// Contract: addresses are 16-byte aligned. Conversion to fp32 is exact, from fp32 rounds to
// nearest.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace kvattn {

constexpr int kVector = 8;

struct Vec8 {
  float x[kVector];
};

__device__ inline Vec8 load8(const float* p) {
  const float4 a = reinterpret_cast<const float4*>(p)[0];
  const float4 b = reinterpret_cast<const float4*>(p)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

__device__ inline Vec8 load8(const __half* p) {
  const uint4 bits = *reinterpret_cast<const uint4*>(p);
  const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  Vec8 v;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    asm("{ .reg .b16 low, high;\n"
        "  mov.b32 {low, high}, %2;\n"
        "  cvt.f32.f16 %0, low;\n"
        "  cvt.f32.f16 %1, high; }"
        : "=f"(v.x[2 * i]), "=f"(v.x[2 * i + 1])
        : "r"(words[i]));
  }
  return v;
}

// A bf16 is the upper half of the fp32 of the same value.
__device__ inline Vec8 load8(const __nv_bfloat16* p) {
  const uint4 bits = *reinterpret_cast<const uint4*>(p);
  const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  Vec8 v;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v.x[2 * i] = __uint_as_float(words[i] << 16);
    v.x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return v;
}

__device__ inline void store8(float* p, const Vec8& v) {
  reinterpret_cast<float4*>(p)[0] = make_float4(v.x[0], v.x[1], v.x[2], v.x[3]);
  reinterpret_cast<float4*>(p)[1] = make_float4(v.x[4], v.x[5], v.x[6], v.x[7]);
}

__device__ inline uint32_t round_pair(float a, float b, __half) {
  const __half2 pair = __floats2half2_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline uint32_t round_pair(float a, float b, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

template <class T>
__device__ inline void store8(T* p, const Vec8& v) {
  uint4 bits;
  bits.x = round_pair(v.x[0], v.x[1], T());
  bits.y = round_pair(v.x[2], v.x[3], T());
  bits.z = round_pair(v.x[4], v.x[5], T());
  bits.w = round_pair(v.x[6], v.x[7], T());
  *reinterpret_cast<uint4*>(p) = bits;
}

}  // namespace kvattn
