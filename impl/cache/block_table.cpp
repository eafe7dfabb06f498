#include <algorithm>
#include <limits>

#include "kvattn/pool.h"

namespace kvattn {

BlockTable::BlockTable(Size size, DeviceMemory memory)
    : size_(size), memory_(std::move(memory)), staging_(size.requests * size.pages_max) {}

StatusOr<BlockTable> BlockTable::create(Size size) {
  int64_t entries = 0;
  if (size.requests < 1 || size.pages_max < 1 ||
      __builtin_mul_overflow(size.requests, size.pages_max, &entries) ||
      entries > std::numeric_limits<int32_t>::max()) {
    return refused("block table: expected 1 to 2^31 - 1 entries, got ", size.requests,
                   " requests of ", size.pages_max, " pages");
  }
  StatusOr<DeviceMemory> memory = allocate_device(entries * sizeof(int32_t));
  if (!memory.ok()) return memory.status();
  return BlockTable(size, *std::move(memory));
}

Status BlockTable::upload(const std::vector<std::span<const Page>>& requests, cudaStream_t stream) {
  const auto rows = static_cast<int64_t>(requests.size());
  if (rows > size_.requests) {
    return refused("block table: expected at most ", size_.requests, " requests, got ", rows);
  }
  for (const auto& pages : requests) {
    if (static_cast<int64_t>(pages.size()) > size_.pages_max) {
      return refused("block table: expected at most ", size_.pages_max, " pages, got ",
                     pages.size());
    }
  }
  // cudaMemcpyAsync from pageable memory has read the source when it returns, so the staging copy
  // may be overwritten by the next upload.
  for (int64_t b = 0; b < rows; ++b) {
    std::ranges::transform(requests[b], staging_.begin() + b * size_.pages_max,
                           [](Page page) { return static_cast<int32_t>(page); });
  }
  rows_ = rows;
  if (rows == 0) return {};
  const cudaError_t error =
      cudaMemcpyAsync(memory_.get(), staging_.data(), rows * size_.pages_max * sizeof(int32_t),
                      cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return failed("block table: ", cudaGetErrorString(error));
  return {};
}

TensorView BlockTable::view() const {
  return dense_view(memory_.get(), DType::kI32, {rows_, size_.pages_max}, 2);
}

}  // namespace kvattn
