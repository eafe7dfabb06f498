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

namespace {

Status launch(const SlotCopies& copies, cudaStream_t stream) {
  if (copies.count == 0) return {};
  const cudaError_t error = launch_copy_slots(copies, stream);
  if (error == cudaSuccess) return {};
  return failed("copy: CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error), ")");
}

/// Slots counted through the whole pool.
SlotCopies::Copy in_pool(const SlotCopy& copy, int64_t page_slots) {
  return {.from = index_of(copy.from) * page_slots + copy.from_slot,
          .to = index_of(copy.to) * page_slots + copy.to_slot,
          .slots = copy.slots};
}

/// The scales of the slots that are copied, or of the pages whose first slots are.
SlotCopies scale_copies(std::span<const SlotCopy> copies, const StoreSize& size,
                        const PoolPlace& pool) {
  SlotCopies moved = {.key = reinterpret_cast<char*>(pool.key_scale),
                      .value = reinterpret_cast<char*>(pool.value_scale),
                      .layer_bytes = pool.scale_layer_bytes,
                      .key_bytes = sizeof(float),
                      .value_bytes = sizeof(float),
                      .layers = size.groups[index_of(copies[0].group)].layers,
                      .count = 0};
  const bool by_page = size.format.scales == ScaleGranularity::kPage;
  for (const SlotCopy& copy : copies) {
    if (by_page && copy.to_slot != 0) continue;
    moved.list[moved.count++] =
        by_page ? SlotCopies::Copy{.from = index_of(copy.from), .to = index_of(copy.to), .slots = 1}
                : in_pool(copy, size.page_slots);
  }
  return moved;
}

}  // namespace

Status copy_slots(std::span<const SlotCopy> copies, const StoreSize& size, const PoolPlace& pool,
                  cudaStream_t stream) {
  while (!copies.empty()) {
    const size_t count = independent_copies(copies);
    SlotCopies moved = {.key = static_cast<char*>(pool.key),
                        .value = static_cast<char*>(pool.value),
                        .layer_bytes = pool.layer_bytes,
                        .key_bytes = static_cast<int32_t>(size.layout.stored_key),
                        .value_bytes = static_cast<int32_t>(size.layout.stored_value),
                        .layers = size.groups[index_of(copies[0].group)].layers,
                        .count = static_cast<int32_t>(count)};
    for (size_t i = 0; i < count; ++i) {
      moved.list[i] = in_pool(copies[i], size.page_slots);
    }
    KVATTN_RETURN_IF_ERROR(launch(moved, stream));
    if (pool.key_scale != nullptr) {
      KVATTN_RETURN_IF_ERROR(launch(scale_copies(copies.first(count), size, pool), stream));
    }
    copies = copies.subspan(count);
  }
  return {};
}

}  // namespace kvattn
