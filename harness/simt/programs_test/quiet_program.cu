// A program that knows nothing of kverify; exit_test runs it in several environments.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__global__ void fill(int* x, int n) {
  const int i = threadIdx.x;
  if (i < n) x[i] = i;  // FAULT: quiet_program
}

int main(int argc, char** argv) {
  const bool faulty = argc > 1 && std::strcmp(argv[1], "faulty") == 0;
  int* x = nullptr;
  cudaMalloc(&x, 32 * sizeof(int));
  fill<<<1, 64>>>(x, faulty ? 33 : 32);
  if (argc > 2) return 0;  // leaves the kernel waiting and the memory allocated
  const cudaError_t error = cudaDeviceSynchronize();
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  std::printf("%s, sm_%d%d\n", cudaGetErrorName(error), properties.major, properties.minor);
  cudaFree(x);
  return 0;
}
