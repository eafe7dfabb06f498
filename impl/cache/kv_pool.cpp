#include <limits>

#include "kvattn/pool.h"

namespace kvattn {
namespace {

int64_t elements_of_slot(const AttentionShape& shape) {
  return shape.kv_heads * (shape.head_dim + shape.dim_of_value());
}

/// Bytes of K and V of one layer, or 0 when the pool's bytes do not fit 63 bits.
int64_t layer_bytes(const AttentionShape& shape, KvPool::Size size) {
  int64_t bytes = size.pages, all = 0;
  for (int64_t factor :
       {shape.page_slots, elements_of_slot(shape), dtype_bytes(cache_dtype(shape))}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return 0;
  }
  return __builtin_mul_overflow(bytes, size.layers, &all) ? 0 : bytes;
}

}  // namespace

KvPool::KvPool(const AttentionShape& shape, Size size, DeviceMemory memory)
    : shape_(shape), size_(size), memory_(std::move(memory)), is_held_(size.pages, false) {
  free_.reserve(size.pages);
  for (int64_t page = size.pages; page > 0; --page) free_.push_back(static_cast<Page>(page - 1));
}

StatusOr<KvPool> KvPool::create(const AttentionShape& shape, Size size) {
  if (Status s = check_shape(shape); !s.ok()) return s;
  const bool counts_fit = size.layers >= 1 && size.layers < (int64_t{1} << 31) && size.pages >= 1 &&
                          size.pages <= std::numeric_limits<int32_t>::max();
  const int64_t bytes = counts_fit ? layer_bytes(shape, size) : 0;
  if (bytes == 0) {
    return refused("pool: expected 1 to 2^31 - 1 layers and pages, and bytes that fit 63 bits, ",
                   "got ", size.layers, " layers of ", size.pages, " pages");
  }
  StatusOr<DeviceMemory> memory = allocate_device(static_cast<uint64_t>(bytes) * size.layers);
  if (!memory.ok()) return memory.status();
  return KvPool(shape, size, *std::move(memory));
}

StatusOr<std::vector<Page>> KvPool::acquire(int64_t count) {
  if (count < 0 || count > free_pages()) {
    return refused("pool: expected 0 to ", free_pages(), " pages to acquire, got ", count);
  }
  std::vector<Page> pages(free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - count);
  for (Page page : pages) is_held_[static_cast<int32_t>(page)] = true;
  return pages;
}

Status KvPool::release(std::span<const Page> pages) {
  std::vector<bool> held = is_held_;
  for (Page page : pages) {
    const auto index = static_cast<int64_t>(page);
    if (index < 0 || index >= size_.pages || !held[index]) {
      return refused("pool: page ", index, " is given back but not held");
    }
    held[index] = false;
  }
  is_held_ = std::move(held);
  free_.insert(free_.end(), pages.begin(), pages.end());
  return {};
}

StatusOr<CacheView> KvPool::layer(int64_t layer, const BlockTable& table) const {
  if (layer < 0 || layer >= size_.layers) {
    return refused("pool: expected a layer below ", size_.layers, ", got ", layer);
  }
  const std::array<int64_t, 4> keys = {size_.pages, shape_.page_slots, shape_.kv_heads,
                                       shape_.head_dim};
  std::array<int64_t, 4> values = keys;
  values[3] = shape_.dim_of_value();
  const int64_t bytes = layer_bytes(shape_, size_);
  const int64_t key_bytes = bytes / (shape_.head_dim + shape_.dim_of_value()) * shape_.head_dim;
  char* key = static_cast<char*>(memory_.get()) + layer * bytes;
  const DType dtype = cache_dtype(shape_);
  return CacheView{.key = dense_view(key, dtype, keys, 4),
                   .value = dense_view(key + key_bytes, dtype, values, 4),
                   .block_table = table.view()};
}

}  // namespace kvattn
