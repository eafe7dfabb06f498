// Copies slots between pages.
//
// Version 1: one block for each copy, layer and tensor. The slots of a page are one run of bytes,
// so a copy is read and written in whole vectors, neighbouring threads side by side.
#include "impl/kernels/copy_slots.h"

namespace kvattn {
namespace {

constexpr int kThreads = 128;

/// Grid: x copies, y layers, z K and V.
template <class Vector>
__global__ void __launch_bounds__(kThreads) copy_slots_kernel(const SlotCopies p) {
  const SlotCopies::Copy copy = p.list[blockIdx.x];
  const bool is_value = blockIdx.z != 0;
  char *layer = (is_value ? p.value : p.key) + blockIdx.y * p.layer_bytes;
  const int64_t slot_bytes = is_value ? p.value_bytes : p.key_bytes;
  const Vector *from = reinterpret_cast<const Vector *>(layer + copy.from * slot_bytes);
  Vector *to = reinterpret_cast<Vector *>(layer + copy.to * slot_bytes);
  const int64_t vectors = copy.slots * slot_bytes / static_cast<int64_t>(sizeof(Vector));
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) to[i] = from[i];
}

}  // namespace

cudaError_t launch_copy_slots(const SlotCopies &copies, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(copies.count), static_cast<unsigned>(copies.layers), 2);
  const int32_t both = copies.key_bytes | copies.value_bytes;
  if (both % 16 == 0) {
    copy_slots_kernel<uint4><<<grid, kThreads, 0, stream>>>(copies);
  } else if (both % 8 == 0) {
    copy_slots_kernel<uint2><<<grid, kThreads, 0, stream>>>(copies);
  } else {
    copy_slots_kernel<uint32_t><<<grid, kThreads, 0, stream>>>(copies);
  }
  return cudaGetLastError();
}

}  // namespace kvattn
