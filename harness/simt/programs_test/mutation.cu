// Kernels that allow every operator of mutate/, for mutation_test.cpp.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "harness/simt/programs_test/mutation.h"

namespace kv::simt::programs {
namespace {

/// Each block sums 64 elements of its row, left to right within a warp, and stores the sum, the
/// largest and a flag.
__global__ void row_sums(const int* in, int* out, int columns, int skipped) {
  __shared__ int tile[64];
  __shared__ int partial[2];
  const int i = threadIdx.x;
  const int* row = in + static_cast<long>(blockIdx.x) * columns;
  tile[i] = 0;
  if (i < columns) __pipeline_memcpy_async(tile + i, row + i, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  int value = tile[63 - i] - skipped;
  if (skipped > 1000) out[i] = i;
  const int most = max(value, __shfl_xor_sync(~0u, value, 1));
  for (int step = 16; step > 0; step >>= 1) value += __shfl_down_sync(~0u, value, step);
  if (i % 32 == 0) partial[i / 32] = value;
  __threadfence_block();
  __syncthreads();
  if (i == 0) {
    out[blockIdx.x * 3] = partial[0] + partial[1];
    out[blockIdx.x * 3 + 1] = most;
    out[blockIdx.x * 3 + 2] = (partial[0] << 3) | 1;
  }
  __syncthreads();  // nothing follows
}

}  // namespace

void launch_row_sums(const int* in, int* out, RowShape shape) {
  row_sums<<<shape.rows, 64>>>(in, out, shape.columns, shape.skipped);
}

}  // namespace kv::simt::programs
