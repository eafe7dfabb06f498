// Compiled with --default-stream per-thread: stream 0 is the calling thread's own, and the program
// calls the runtime's _ptsz and _ptds variants.
#include <cuda_runtime.h>

#include <vector>

namespace kv::simt::programs {
namespace {

__global__ void increment(int* x) { x[threadIdx.x] += 1; }

}  // namespace

void per_thread_increment(int* x, int n) { increment<<<1, n>>>(x); }

std::vector<int> per_thread_round_trip(const std::vector<int>& values) {
  const size_t bytes = values.size() * sizeof(int);
  int* x = nullptr;
  cudaMalloc(&x, bytes);
  cudaMemcpy(x, values.data(), bytes, cudaMemcpyHostToDevice);
  per_thread_increment(x, static_cast<int>(values.size()));
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaEventRecord(done);
  cudaStreamWaitEvent(cudaStreamLegacy, done, 0);
  std::vector<int> result(values.size());
  cudaMemcpyAsync(result.data(), x, bytes, cudaMemcpyDeviceToHost);
  cudaStreamSynchronize(nullptr);
  cudaEventDestroy(done);
  cudaFree(x);
  return result;
}

}  // namespace kv::simt::programs
