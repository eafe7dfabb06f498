// Purpose: C = alpha * op(A) * op(B) + beta * C for a batch of column-major matrices.
// Contract: op(A) is m x k, op(B) is k x n. With beta = 0, C is not read; with alpha = 0 or k = 0,
// neither A nor B is. Entry (i, j) is at [i + j * ld]. Dimensions are not negative, leading
// dimensions at least the rows of what is stored.
// Example:
//   launch_gemm({.m = 2, .n = 3, .k = 4, .a = {.base = a, .ld = 2}, ..., .batch = 1}, stream);
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kv::simt::cublas {

enum class Element : uint8_t { kF16, kBf16, kF32 };

/// The matrices of a batch: `array[b]` when array is set, else `base` + b * stride elements.
struct Matrices {
  void* base = nullptr;
  void** array = nullptr;
  int64_t stride = 0;  // elements
  int64_t ld = 1;      // elements
  bool transposed = false;
};

/// A factor, by value or read when the kernel runs.
struct Factor {
  float value = 0;
  const void* device = nullptr;  // a float or, if `is_half`, a half in device memory
  bool is_half = false;
};

struct Gemm {
  int m = 0, n = 0, k = 0;
  Element input = Element::kF32;   // of A and B
  Element output = Element::kF32;  // of C: as the input, or f32
  Factor alpha, beta;
  Matrices a, b, c;
  int batch = 1;
};

/// False if there is no kernel for the types.
bool is_supported(Element input, Element output);
cudaError_t launch_gemm(const Gemm& gemm, cudaStream_t stream);

}  // namespace kv::simt::cublas
