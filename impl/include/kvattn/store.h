// Purpose: the memory of one paged cache, and the attention over it: what an Engine drives.
//
// Contract:
//  - PagedCache decides which page; a Store moves bytes. Page p of group g holds the slots of that
//    group's layers; layers are numbered through all groups.
//  - Work is enqueued on one stream, in the order of the calls; wait(step) ends all work up to
//    mark(step). read() waits for everything.
//  - check() and create are where things can fail; after that only a broken device makes a call
//    fail, and the Store is not to be used again.
//  - Q, K and V tensors of a step are dense: [rows, heads, head_dim], in the order of the batch.
//
// Example:  store.copy(copies); StepTensors t = *store.begin(batch); store.append(0);
//           store.attend(0, output, lse); store.mark(1); store.wait(1);
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "kvattn/cache_format.h"
#include "kvattn/paged_cache.h"
#include "kvattn/status.h"
#include "kvattn/units.h"

namespace kvattn {

constexpr int kGroupsMax = 8;
constexpr int64_t kTreeSlotsMax = 256;  // of one row

/// One request of a step, after PagedCache::step.
struct BatchRow {
  RequestId request = {};
  int64_t position_offset = 0;
  int64_t first_slot = 0;    // of the appended ones
  int64_t appended = 0;      // slots
  int64_t queries = 0;       // of the last slots
  int64_t append_begin = 0;  // first row in the step's K and V tensors
  int64_t query_begin = 0;   // first row in the step's Q tensor; rows between two requests' are PAD
  std::span<const int32_t> tree_parents = {};  // of the appended slots; empty: a chain
  std::array<std::span<const Page>, kGroupsMax> tables = {};
  std::array<int64_t, kGroupsMax> kept_from = {};  // slot
  int64_t length() const { return first_slot + appended; }
  /// Of one of the last slots; a branch of a tree stands behind its ancestors alone.
  int64_t position(int64_t slot) const;
};
struct Batch {
  std::span<const BatchRow> rows;
  int64_t appended = 0, queries = 0;  // rows of the tensors, PAD ones included
  bool attends = false;
};

/// Bytes of one row of each tensor.
struct SlotLayout {
  int64_t query = 0, key = 0, value = 0, output = 0;
  int64_t stored_key = 0, stored_value = 0;  // of one slot, in the cache
  int64_t scales = 0;                        // of K, and of V, fp32; 0: there are none
  int64_t query_heads = 0;
};
/// Where Q, K and V of a layer go, in the Store's memory.
struct StepTensors {
  void *query = nullptr, *key = nullptr, *value = nullptr;
  /// fp32 [rows of K], where tokens or pages have scales: of the row's token.
  void *key_scales = nullptr, *value_scales = nullptr;
};
struct SlotPlace {
  Page page = kNoPage;
  int64_t slot = 0;  // of the page
  int32_t layer = 0;
  int64_t slots = 1;  // from there on, of the same page
};
struct SlotBytes {
  void *key = nullptr, *value = nullptr;  // host: [slots, kv_heads, head_dim], as stored
  /// host: fp32 [slots, kv_heads], wherever they lie; nullptr: not wanted.
  void *key_scales = nullptr, *value_scales = nullptr;
};
struct ConstSlotBytes {
  const void *key = nullptr, *value = nullptr, *key_scales = nullptr, *value_scales = nullptr;
};
struct LayerResult {
  void* output = nullptr;  // host: [query rows without PAD, query_heads, head_dim]
  float* lse = nullptr;    // host: [query rows without PAD, query_heads], natural logarithm
};

class Store {
 public:
  virtual ~Store() = default;
  virtual SlotLayout layout() const = 0;
  virtual const CacheFormat& format() const = 0;
  /// Ok: begin() and attend() will take such a batch. Its tables are not looked at.
  virtual Status check(const Batch& batch) = 0;

  virtual Status copy(std::span<const SlotCopy> copies) = 0;
  virtual Status to_host(std::span<const HostCopy> copies) = 0;
  virtual Status from_host(std::span<const HostCopy> copies) = 0;

  virtual StatusOr<StepTensors> begin(const Batch& batch) = 0;
  /// Copies host bytes into a tensor of the step; they have been read when the call returns.
  virtual Status upload(void* to, const void* from, ByteCount bytes) = 0;
  virtual Status append(int32_t layer) = 0;
  virtual Status attend(int32_t layer, const LayerResult& result) = 0;
  /// Waits until what attend() has been asked for so far is written.
  virtual Status finish() = 0;

  virtual Status mark(StepNumber step) = 0;
  virtual Status wait(StepNumber step) = 0;

  virtual Status read(const SlotPlace& place, const SlotBytes& out) = 0;
  virtual Status write(const SlotPlace& place, const ConstSlotBytes& bytes) = 0;
};

/// What query heads bring along besides their rows, [layers][query_heads]; empty: not used.
struct HeadInputs {
  std::vector<float> alibi_slopes, sinks;
};

/// How large a Store is made.
struct StoreSize {
  std::vector<LayerGroup> groups;
  PageCount pages, host_pages;
  int64_t page_slots = 16;
  int32_t batch_slots = 1;
  SlotCount context_limit, step_slots_max;
  SlotLayout layout;
  CacheFormat format = {};
};
StoreSize store_size(const PagedCacheConfig& config, const SlotLayout& layout);

/// In host memory: appends (rotates, quantises), copies and reads; attention is not offered.
std::unique_ptr<Store> make_host_store(const StoreSize& size);

}  // namespace kvattn
