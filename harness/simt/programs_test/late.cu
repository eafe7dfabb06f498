// A module of its own, loaded after its mutation was chosen; see mutation_test.cpp.
#include <cuda_runtime.h>

#include "harness/simt/programs_test/mutation.h"

namespace kv::simt::programs {
namespace {

__global__ void fill_first(int* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = 5;
}

}  // namespace

void launch_fill_first(int* out, int n) { fill_first<<<1, 32>>>(out, n); }

}  // namespace kv::simt::programs
