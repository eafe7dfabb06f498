// Multiplies each row of a matrix by a factor of its own.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void scale_rows(float* matrix, const float* factors, int rows, int columns) {
  const int row = blockIdx.x;
  const int column = threadIdx.x;
  if (column < columns) matrix[row * columns + column] *= factors[row];
}

int main() {
  const int rows = 6, columns = 40;
  const std::vector<float> ones(rows * columns, 1.0f), factors(rows, 0.5f);
  float *matrix = nullptr, *device_factors = nullptr;
  cudaMalloc(&matrix, ones.size() * sizeof(float));
  cudaMalloc(&device_factors, rows * sizeof(float));
  cudaMemcpy(matrix, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice);
#ifdef FIXED
  cudaMemcpy(device_factors, factors.data(), rows * sizeof(float), cudaMemcpyHostToDevice);
#else
  cudaMemcpy(device_factors, factors.data(), rows, cudaMemcpyHostToDevice);  // bytes, not elements
#endif
  scale_rows<<<rows, 64>>>(matrix, device_factors, rows, columns);
  std::vector<float> result(ones.size());
  cudaMemcpy(result.data(), matrix, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("first row: %g\n", result[0]);
  cudaFree(device_factors);
  return cudaFree(matrix) == cudaSuccess ? 0 : 1;
}
