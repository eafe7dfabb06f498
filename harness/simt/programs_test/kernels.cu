#include <cassert>
#include <cstdio>

#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {
namespace {

__constant__ float factors[4];
__device__ int calls;
__managed__ int managed = 5;
int not_on_the_device;

__global__ void vector_add_kernel(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void add_to(int* x, int amount, int n) {
  if (threadIdx.x < n) x[threadIdx.x] += amount;
}

__global__ void multiply_by(int* x, int factor, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= factor;
}

__global__ void scale_kernel(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= factors[threadIdx.x % 4];
  if (threadIdx.x == 0) atomicAdd(&calls, 1);
}

__global__ void reverse_in_shared(int* x, int n) {
  extern __shared__ int tile[];
  __shared__ int first[4];
  if (threadIdx.x < 4) first[threadIdx.x] = n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < first[0]; i += blockDim.x) x[i] = tile[n - 1 - i];
}

__global__ void write_one(int* x, long long index, int value) { x[index] = value; }

__global__ void write_word(char* x) { *reinterpret_cast<int*>(x + 1) = 1; }

__global__ void trap_kernel() { __trap(); }

__global__ void assert_kernel(int value) { assert(value > 0); }

__global__ void spin_kernel(const volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void empty_kernel() {}

__global__ void __launch_bounds__(64) bounded_kernel() {}

__global__ void print_kernel(int n) {
  if (threadIdx.x == 0) printf("number %d of %s\n", n, "the device");
}

__global__ void unpack_kernel(Mixed mixed, int last, long long* out) {
  out[0] = mixed.small;
  out[1] = mixed.wide;
  out[2] = mixed.half;
  out[3] = last;
}

__global__ void count_kernel(int* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}

__global__ void managed_kernel() { managed += 1; }

}  // namespace

void vector_add(const float* a, const float* b, float* sum, int n, cudaStream_t stream) {
  vector_add_kernel<<<(n + 31) / 32, 32, 0, stream>>>(a, b, sum, n);
}
void add(int* x, int amount, int n, cudaStream_t stream) {
  add_to<<<1, n, 0, stream>>>(x, amount, n);
}
void multiply(int* x, int factor, int n, cudaStream_t stream) {
  multiply_by<<<1, n, 0, stream>>>(x, factor, n);
}
void scale_by_constants(float* x, int n) { scale_kernel<<<1, n>>>(x, n); }
void reverse(int* x, int n, size_t shared_bytes) {
  reverse_in_shared<<<1, 128, shared_bytes>>>(x, n);
}
void write_at(int* x, long long index, int value, cudaStream_t stream) {
  write_one<<<1, 1, 0, stream>>>(x, index, value);
}
void write_misaligned(char* x) { write_word<<<1, 1>>>(x); }
void trap_now() { trap_kernel<<<1, 1>>>(); }
void assert_positive(int value) { assert_kernel<<<1, 1>>>(value); }
void spin_on(const int* flag) { spin_kernel<<<1, 1>>>(flag); }
void launch_shape(dim3 grid, dim3 block, size_t shared_bytes) {
  empty_kernel<<<grid, block, shared_bytes>>>();
}
void launch_bounded(int threads) { bounded_kernel<<<1, threads>>>(); }
void print_numbers(int n) { print_kernel<<<1, 32>>>(n); }
void unpack(const Mixed& mixed, int last, long long* out) {
  unpack_kernel<<<1, 1>>>(mixed, last, out);
}
void count_blocks(int* counter, int blocks, cudaStream_t stream) {
  count_kernel<<<blocks, 32, 0, stream>>>(counter);
}
void increment_managed() { managed_kernel<<<1, 1>>>(); }
int& managed_value() { return managed; }

const void* add_kernel() { return reinterpret_cast<const void*>(add_to); }
const void* reverse_kernel() { return reinterpret_cast<const void*>(reverse_in_shared); }
const void* factors_symbol() { return &factors; }
const void* calls_symbol() { return &calls; }
const void* unregistered_symbol() { return &not_on_the_device; }

}  // namespace kv::simt::programs
