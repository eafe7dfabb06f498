#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "harness/simt/cublas/gemm.h"

namespace kv::simt::cublas {
namespace {

constexpr int kRows = 32, kColumns = 4;  // of C, for each block: a warp reads and writes a column
constexpr int kBatchMax = 65535;         // of the grid; a block walks over what is beyond

__device__ float widen(float x) { return x; }
__device__ float widen(__half x) { return __half2float(x); }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T narrow(float x);
template <>
__device__ float narrow<float>(float x) {
  return x;
}
template <>
__device__ __half narrow<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

template <class T>
__device__ T* matrix(const Matrices& m, int batch) {
  if (m.array) return static_cast<T*>(m.array[batch]);
  return static_cast<T*>(m.base) + batch * m.stride;
}

__device__ float factor(const Factor& f) {
  if (!f.device) return f.value;
  return f.is_half ? __half2float(*static_cast<const __half*>(f.device))
                   : *static_cast<const float*>(f.device);
}

template <class Input, class Output>
__global__ void gemm_kernel(const Gemm g) {
  const int row = blockIdx.x * kRows + threadIdx.x;
  const int column = blockIdx.y * kColumns + threadIdx.y;
  if (row >= g.m || column >= g.n) return;
  const float alpha = factor(g.alpha), beta = factor(g.beta);
  const int64_t a_row = g.a.transposed ? g.a.ld : 1, a_k = g.a.transposed ? 1 : g.a.ld;
  const int64_t b_column = g.b.transposed ? 1 : g.b.ld, b_k = g.b.transposed ? g.b.ld : 1;
  for (int batch = blockIdx.z; batch < g.batch; batch += gridDim.z) {
    float sum = 0.0f;
    if (alpha != 0.0f) {
      const Input* a = matrix<Input>(g.a, batch) + row * a_row;
      const Input* b = matrix<Input>(g.b, batch) + column * b_column;
      for (int64_t k = 0; k < g.k; ++k) sum = fmaf(widen(a[k * a_k]), widen(b[k * b_k]), sum);
    }
    Output* c = matrix<Output>(g.c, batch) + (row + column * g.c.ld);
    float value = alpha * sum;
    if (beta != 0.0f) value = fmaf(beta, widen(*c), value);
    *c = narrow<Output>(value);
  }
}

template <class Input, class Output>
void launch(const Gemm& g, cudaStream_t stream) {
  const dim3 grid((g.m + kRows - 1) / kRows, (g.n + kColumns - 1) / kColumns,
                  std::min(g.batch, kBatchMax));
  gemm_kernel<Input, Output><<<grid, dim3(kRows, kColumns), 0, stream>>>(g);
}

}  // namespace

bool is_supported(Element input, Element output) {
  return output == input || output == Element::kF32;
}

cudaError_t launch_gemm(const Gemm& g, cudaStream_t stream) {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return cudaSuccess;
  const bool wide = g.output == Element::kF32;
  switch (g.input) {
    case Element::kF32:
      launch<float, float>(g, stream);
      break;
    case Element::kF16:
      wide ? launch<__half, float>(g, stream) : launch<__half, __half>(g, stream);
      break;
    case Element::kBf16:
      wide ? launch<__nv_bfloat16, float>(g, stream)
           : launch<__nv_bfloat16, __nv_bfloat16>(g, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace kv::simt::cublas
