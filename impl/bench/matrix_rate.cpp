#include "impl/bench/matrix_rate.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>

namespace kvattn::bench {
namespace {

constexpr int kSize = 8192, kRuns = 10;

using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void*, const void*, cudaDataType, int, const void*,
                                cudaDataType, int, const void*, void*, cudaDataType, int,
                                cublasComputeType_t, cublasGemmAlgo_t);

/// Loaded when asked for, so that everything else runs without it.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  Gemm gemm = nullptr;

  static Cublas load() {
    Cublas loaded;
    void* library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return loaded;
    loaded.create = reinterpret_cast<decltype(create)>(dlsym(library, "cublasCreate_v2"));
    loaded.destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "cublasDestroy_v2"));
    loaded.gemm = reinterpret_cast<Gemm>(dlsym(library, "cublasGemmEx"));
    return loaded;
  }
  bool is_whole() const { return create != nullptr && destroy != nullptr && gemm != nullptr; }
};

/// c = a * b, once; false when cuBLAS refuses.
bool multiply(const Cublas& cublas, cublasHandle_t handle, void* const (&matrices)[3]) {
  const float one = 1, zero = 0;
  return cublas.gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &one, matrices[0],
                     CUDA_R_16F, kSize, matrices[1], CUDA_R_16F, kSize, &zero, matrices[2],
                     CUDA_R_16F, kSize, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

/// Milliseconds of the fastest run; 0 when there was none.
float fastest_ms(const Cublas& cublas, cublasHandle_t handle, void* const (&matrices)[3]) {
  cudaEvent_t begin, end;
  if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) return 0;
  float best = 0;
  for (int run = 0; run < kRuns; ++run) {
    float ms = 0;
    if (cudaEventRecord(begin, nullptr) != cudaSuccess || !multiply(cublas, handle, matrices) ||
        cudaEventRecord(end, nullptr) != cudaSuccess || cudaEventSynchronize(end) != cudaSuccess ||
        cudaEventElapsedTime(&ms, begin, end) != cudaSuccess)
      return 0;
    best = run == 0 ? ms : std::min(best, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

}  // namespace

double matrix_rate() {
  const Cublas cublas = Cublas::load();
  cublasHandle_t handle = nullptr;
  if (!cublas.is_whole() || cublas.create(&handle) != CUBLAS_STATUS_SUCCESS) return 0;
  void* matrices[3] = {};
  constexpr size_t kBytes = size_t{kSize} * kSize * 2;
  bool is_there = true;
  for (void*& matrix : matrices) {
    is_there = is_there && cudaMalloc(&matrix, kBytes) == cudaSuccess &&
               cudaMemset(matrix, 0, kBytes) == cudaSuccess;
  }
  const float ms = is_there ? fastest_ms(cublas, handle, matrices) : 0;
  for (void* matrix : matrices) cudaFree(matrix);
  cublas.destroy(handle);
  return ms > 0 ? 2.0 * kSize * kSize * kSize / ms * 1e3 : 0;
}

}  // namespace kvattn::bench
