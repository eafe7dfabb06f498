#include "impl/bench/matrix_rate.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>

#include "impl/bench/device_data.h"

namespace kvattn::bench {
namespace {

constexpr int kRuns = 10;

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

struct Matrices {
  int size;
  uint64_t bytes = uint64_t{2} * size * size;
  DeviceMemory a = allocate_numbers(bytes), b = allocate_numbers(bytes), c = allocate(bytes);
};

/// c = a * b, once; false when cuBLAS refuses.
bool multiply(const Cublas& cublas, cublasHandle_t handle, const Matrices& m) {
  const float one = 1, zero = 0;
  return cublas.gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m.size, m.size, m.size, &one, m.a.get(),
                     CUDA_R_16F, m.size, m.b.get(), CUDA_R_16F, m.size, &zero, m.c.get(),
                     CUDA_R_16F, m.size, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

/// Milliseconds of the fastest run; 0 when there was none.
float fastest_ms(const Cublas& cublas, cublasHandle_t handle, const Matrices& matrices) {
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

double matrix_rate(int size) {
  const Cublas cublas = Cublas::load();
  cublasHandle_t handle = nullptr;
  if (!cublas.is_whole() || cublas.create(&handle) != CUBLAS_STATUS_SUCCESS) return 0;
  const Matrices matrices{size};
  const double ms = fastest_ms(cublas, handle, matrices);
  cublas.destroy(handle);
  return ms > 0 ? 2.0 * size * size * size / ms * 1e3 : 0;
}

}  // namespace kvattn::bench
