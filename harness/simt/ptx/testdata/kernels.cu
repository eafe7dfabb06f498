// Kernels whose PTX shows what a parser must read: see nvcc_test.cpp for what each is there for.
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 7;
__device__ int* pointers[2] = {&counter, nullptr};

struct __attribute__((packed)) Packed {
  char tag;
  int* pointer;
  short tail;
};
__device__ Packed packed = {1, &counter, 5};

struct Options {
  float scale;
  int* pointer;
  short shift;
};

__device__ __noinline__ float helper(float value, Options options) {
  return value * options.scale + *options.pointer + options.shift;
}

/// Inline assembly whose register and label repeat in every copy.
__device__ __forceinline__ void trap_if_zero(int value) {
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.b32 p, %0, 0;\n @p bra DONE;\n trap;\nDONE:\n}\n" ::"r"(value));
}

__global__ void __launch_bounds__(128, 2) branches(float* out, const float* in, int n, Options o) {
  extern __shared__ char dynamic[];
  __shared__ float tile[32];
  float local[8];
  for (int i = 0; i < n; i++) local[(i * n) & 7] = in[i];
  trap_if_zero(n);
  trap_if_zero(n + 1);
  if (n == 5) tile[n] = table[n & 3];
  if (n == 7) printf("n %d\n", n);
  __syncthreads();
  o.pointer = pointers[n & 1];
  out[threadIdx.x] = local[n & 7] + helper(tile[threadIdx.x & 31] + dynamic[3], o) + packed.tag;
}

/// What flash attention kernels are made of: cp.async with a zero-fill size, ldmatrix, mma, shfl.
__global__ void matrix(const half* in, float* out, int rows) {
  __shared__ __align__(16) half tile[16 * 16];
  const int lane = threadIdx.x;
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(base + lane * 16),
               "l"(in + lane * 8), "r"(lane < rows ? 16 : 0));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;");
  __syncwarp();
  uint32_t a[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(base + lane * 16));
  float c[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[0]), "r"(a[1]));
  c[0] += __shfl_xor_sync(~0u, c[1], 16);
  reinterpret_cast<float4*>(out)[lane] = make_float4(c[0], c[1], c[2], c[3]);
}
