#include "impl/engine/slot_copies.h"

#include <algorithm>

#include "impl/kernels/copy_slots.h"

namespace kvattn {
namespace {

struct Slots {
  Page page;
  int32_t first, count;
};
Slots read_by(const SlotCopy& c) { return {c.from, c.from_slot, c.slots}; }
Slots written_by(const SlotCopy& c) { return {c.to, c.to_slot, c.slots}; }
bool meet(const Slots& a, const Slots& b) {
  return a.page == b.page && a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace

size_t independent_copies(std::span<const SlotCopy> copies) {
  const size_t most = std::min<size_t>(copies.size(), kCopiesMax);
  for (size_t i = 1; i < most; ++i) {
    for (const SlotCopy& before : copies.first(i)) {
      const SlotCopy& copy = copies[i];
      if (copy.group != before.group || meet(written_by(copy), written_by(before)) ||
          meet(written_by(copy), read_by(before)) || meet(read_by(copy), written_by(before))) {
        return i;
      }
    }
  }
  return most;
}

Status copy_slots(std::span<const SlotCopy> copies, const StoreSize& size, const PoolPlace& pool,
                  cudaStream_t stream) {
  while (!copies.empty()) {
    const size_t count = independent_copies(copies);
    SlotCopies launch = {.key = static_cast<char*>(pool.key),
                         .value = static_cast<char*>(pool.value),
                         .layer_bytes = pool.layer_bytes,
                         .key_bytes = static_cast<int32_t>(size.layout.key),
                         .value_bytes = static_cast<int32_t>(size.layout.value),
                         .layers = size.groups[index_of(copies[0].group)].layers,
                         .count = static_cast<int32_t>(count)};
    for (size_t i = 0; i < count; ++i) {
      const SlotCopy& copy = copies[i];
      launch.list[i] = {.from = index_of(copy.from) * size.page_slots + copy.from_slot,
                        .to = index_of(copy.to) * size.page_slots + copy.to_slot,
                        .slots = copy.slots};
    }
    if (const cudaError_t error = launch_copy_slots(launch, stream); error != cudaSuccess) {
      return failed("copy: CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error),
                    ")");
    }
    copies = copies.subspan(count);
  }
  return {};
}

}  // namespace kvattn
