// Writes the architecture that its code was compiled for. Compiled several times, each time into a
// differently made fat binary; KV_VARIANT keeps the names apart.
#include <cuda_runtime.h>

namespace kv::simt::programs {
namespace {

__global__ void write_arch(int* out) {
#ifdef __CUDA_ARCH__
  *out = __CUDA_ARCH__;
#endif
}

}  // namespace

void KV_VARIANT(int* out) { write_arch<<<1, 1>>>(out); }

}  // namespace kv::simt::programs
