// A program of one kernel that ends in the way that its argument names, for exec_test.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

__global__ void fill(int* out, int bound) {
  if (int(threadIdx.x) < bound) out[threadIdx.x] = int(threadIdx.x);
}

// Warps 1 and 2 wait for what nobody writes, warp 0 for them.
__global__ void spin(volatile int* flag) {
  if (threadIdx.x >= 32) {
    while (*flag == 0) {
    }
  }
  __syncthreads();
}

// Never the same value twice: it is busy.
__global__ void count(int* out, int step) {
  for (int i = 0; step != 0; i += step) *out = i;
}

// A finding after which the program can go on.
__global__ void count_down(int* undefined) {
  if (*undefined > 0) --*undefined;
}

int main(int, char** arguments) {
  const char* const end = arguments[1];
  const auto wants = [end](const char* name) { return std::strcmp(end, name) == 0; };
  int* memory = nullptr;
  cudaMalloc(&memory, 32 * sizeof(int));
  cudaMemset(memory, 0, 32 * sizeof(int));
  fill<<<1, 64>>>(memory, wants("overrun") || wants("exec") ? 33 : 32);
  if (wants("unawaited")) _exit(0);
  if (wants("fork")) {  // the child has launched, found and allocated nothing
    const pid_t child = fork();
    if (child == 0) return 0;
    int status = 0;
    waitpid(child, &status, 0);
  }
  cudaDeviceSynchronize();
  if (wants("overrun") || wants("_exit")) _exit(7);
  if (wants("exec") || wants("become")) execl("/bin/true", "true", nullptr);
  if (wants("signal")) std::raise(SIGSEGV);
  if (wants("spin")) spin<<<1, 96>>>(memory);
  if (wants("count")) count<<<2, 1>>>(memory, 1);
  if (cudaDeviceSynchronize() != cudaSuccess) return 8;
  while (wants("host")) usleep(1000);
  if (wants("leak")) {
    cudaMalloc(&memory, sizeof(int));
    count_down<<<1, 1>>>(memory);
    return int(cudaDeviceSynchronize());
  }
  return cudaFree(memory) == cudaSuccess ? 0 : 1;
}
