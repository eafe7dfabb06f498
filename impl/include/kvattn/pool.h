// Purpose: device memory of a paged KV cache, and the block tables that map requests to it.
//
// Contract:
//  - KvPool owns one allocation: [layers][K, V][pages][page_slots][kv_heads][dimension], in the
//    cache's dtype; scales of codes are the caller's. Its content is undefined until written. Pages
//    are handed out by number; one number names the same page of every layer. Any page may be
//    handed out next.
//  - BlockTable owns the device copy of the pages of a batch of requests.
//  - Objects move, and do not copy. Destruction frees device memory; the caller synchronises the
//    streams that use it first. All calls come from one thread at a time.
//
// Example:
//   KvPool pool = *KvPool::create(shape, {.layers = 32, .pages = 4096});
//   std::vector<Page> pages = *pool.acquire(7);
//   BlockTable table = *BlockTable::create({.requests = 64, .pages_max = 256});
//   table.upload({pages}, stream);
//   CacheView cache = pool.layer(0, table);
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvattn/attention.h"
#include "kvattn/status.h"
#include "kvattn/units.h"

namespace kvattn {

/// Device memory of one allocation, freed with cudaFree.
struct DeviceFree {
  void operator()(void* p) const;
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;
StatusOr<DeviceMemory> allocate_device(uint64_t bytes);

class BlockTable {
 public:
  struct Size {
    int64_t requests, pages_max;  // rows, and pages of one request
  };
  static StatusOr<BlockTable> create(Size size);

  /// Copies the pages of the first requests.size() rows to the device; the other entries keep what
  /// they held. Refused, and nothing copied, when a row or the batch is longer than the table.
  Status upload(const std::vector<std::span<const Page>>& requests, cudaStream_t stream);

  /// int32 [requests, pages_max]: the rows of the last upload.
  TensorView view() const;

 private:
  BlockTable(Size size, DeviceMemory memory);
  Size size_;
  int64_t rows_ = 0;
  DeviceMemory memory_;
  std::vector<int32_t> staging_;
};

class KvPool {
 public:
  struct Size {
    int64_t layers, pages;
  };
  static StatusOr<KvPool> create(const AttentionShape& shape, Size size);

  /// `count` pages that nobody holds. Refused when there are fewer; then none is taken.
  StatusOr<std::vector<Page>> acquire(int64_t count);
  /// Gives pages back. Refused, and none is given back, when one of them is not held or is named
  /// twice.
  Status release(std::span<const Page> pages);
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }

  /// The cache of one layer, 0-based, as the attention calls take it, but for scales.
  StatusOr<CacheView> layer(int64_t layer, const BlockTable& table) const;

 private:
  KvPool(const AttentionShape& shape, Size size, DeviceMemory memory);
  AttentionShape shape_;
  Size size_;
  DeviceMemory memory_;
  std::vector<Page> free_;     // the next page is taken from the back
  std::vector<bool> is_held_;  // [pages]
};

}  // namespace kvattn
