// The product of two matrices of ones, by cuBLAS. With an argument half of B is left undefined.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

int main(int argc, char **) {
  constexpr int kRows = 8, kElements = kRows * kRows;
  constexpr size_t kBytes = kElements * sizeof(float);
  const std::vector<float> ones(kElements, 1.0f);
  std::vector<float> product(kElements);
  void *a = nullptr, *b = nullptr, *c = nullptr;
  cudaMalloc(&a, kBytes);
  cudaMalloc(&b, kBytes);
  cudaMalloc(&c, kBytes);
  cudaMemcpy(a, ones.data(), kBytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b, ones.data(), argc > 1 ? kBytes / 2 : kBytes, cudaMemcpyHostToDevice);
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  const float one = 1, zero = 0;
  const cublasStatus_t status = cublasGemmEx(
      handle, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kRows, kRows, &one, a, CUDA_R_32F, kRows, b,
      CUDA_R_32F, kRows, &zero, c, CUDA_R_32F, kRows, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  cudaMemcpy(product.data(), c, kBytes, cudaMemcpyDeviceToHost);
  std::printf("%g\n", product[0]);
  cublasDestroy(handle);
  cudaFree(c);
  cudaFree(b);
  cudaFree(a);
  return status == CUBLAS_STATUS_SUCCESS ? 0 : 1;
}
