// Purpose: kernels that the tests of the runtime launch, behind plain functions, so that the tests
// themselves are ordinary C++.
// Contract: each function is one `<<<>>>`; its error is left to cudaGetLastError, as in any
// program.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace kv::simt::programs {

/// sum[i] = a[i] + b[i], 32 threads a block.
void vector_add(const float* a, const float* b, float* sum, int n, cudaStream_t stream = nullptr);
/// x[i] += amount, one block of n threads.
void add(int* x, int amount, int n, cudaStream_t stream = nullptr);
/// x[i] *= factor.
void multiply(int* x, int factor, int n, cudaStream_t stream = nullptr);
/// x[i] = factors[i % 4] * x[i]; counts calls in a device variable.
void scale_by_constants(float* x, int n);
/// Reverses n ints through n * 4 bytes of dynamic shared memory, asking for `shared_bytes`.
void reverse(int* x, int n, size_t shared_bytes);
/// Writes x[index] with one thread.
void write_at(int* x, long long index, int value, cudaStream_t stream = nullptr);
void write_misaligned(char* x);
void trap_now();
void assert_positive(int value);
void spin_on(const int* flag);
/// An empty kernel with the given shape.
void launch_shape(dim3 grid, dim3 block, size_t shared_bytes = 0);
/// Blocks of 64 threads at most, by its launch bounds.
void launch_bounded(int threads);
void print_numbers(int n);
/// out[0..3] = the members of `mixed`, which is aligned to 8, and the parameter after it.
struct Mixed {
  char small;
  long long wide;
  short half;
};
void unpack(const Mixed& mixed, int last, long long* out);
/// out[i] = counter++ over all blocks: how many blocks ran.
void count_blocks(int* counter, int blocks, cudaStream_t stream = nullptr);
/// Adds one to the managed variable; managed_value() is the host's view of it.
void increment_managed();
int& managed_value();

const void* add_kernel();      // (int* x, int amount, int n)
const void* reverse_kernel();  // (int* x, int n), 16 bytes of static shared memory
const void* factors_symbol();  // __constant__ float[4]
const void* calls_symbol();    // __device__ int
const void* unregistered_symbol();

}  // namespace kv::simt::programs
