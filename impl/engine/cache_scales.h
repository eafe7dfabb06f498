// Purpose: the scales of a cache of codes in device memory, and on their way to it and from it.
// Contract: scales of tokens and pages lie as AttentionShape wants them, [pool layers][K, V][pages]
// or [pages, page_slots], undefined until placed; those of tensors and heads are the model's, for
// each of its layers, and never change. A cache without scales has none, and every call does
// nothing. Calls enqueue on the stream; read() waits for it.
// Example:  CacheScales scales = *CacheScales::create(size);  scales.add_to(cache, place);
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kvattn/pool.h"
#include "kvattn/store.h"

namespace kvattn {

class CacheScales {
 public:
  static StatusOr<CacheScales> create(const StoreSize& size);

  /// A layer of the model, and where the pool has it.
  struct Layer {
    int32_t of_model = 0, of_pool = 0;
  };
  /// Slots, from `slot` on, of a page of a layer.
  struct Place {
    Page page = kNoPage;
    int64_t slot = 0, slots = 1;
    Layer layer;
  };

  void add_to(CacheView& cache, Layer layer) const;
  /// Of new tokens, fp32 [tokens] each, which `call` is about to append to its cache.
  Status place(const AppendCall& call, const void* key, const void* value) const;

  /// Tokens or pages have scales of their own, which move with them.
  bool move() const { return memory_.get() != nullptr; }
  float* of_page_zero(bool value) const;  // of pool layer 0
  int64_t layer_bytes() const { return 2 * part_bytes(); }

  /// Bytes of the scales of one page of one layer, in host memory: K, then V.
  int64_t page_bytes() const { return move() ? 2 * page_scales_ * int64_t{sizeof(float)} : 0; }
  Status to_host(void* host, const Place& place, cudaStream_t stream) const;
  Status from_host(const Place& place, const void* host, cudaStream_t stream) const;

  /// Of each slot and head, [slots, kv_heads]; nothing where the caller wants none.
  Status read(const Place& place, const SlotBytes& out, cudaStream_t stream) const;
  /// Of one slot: its own, or, in the first of a page, the page's.
  Status write(const Place& place, const ConstSlotBytes& bytes, cudaStream_t stream) const;

 private:
  int64_t part_bytes() const { return pages_ * page_scales_ * int64_t{sizeof(float)}; }
  float* at(const Place& place, bool value) const;
  int64_t count_at(const Place& place) const;

  CacheFormat format_;
  int64_t pages_ = 0, page_slots_ = 1;
  int64_t page_scales_ = 0;   // of one page: one, or one of each slot
  DeviceMemory memory_;       // of tokens or pages
  DeviceMemory constants_;    // of tensors or heads: [K, V][model layers][kv_heads]
  int64_t model_layers_ = 0;  // that constants_ has
};

}  // namespace kvattn
