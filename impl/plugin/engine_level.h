// Purpose: the parts of the engine-level plugin.
// Contract: a plugin links one backend: what makes the stores.
// Example:  cuda_backend.cpp.
#pragma once

#include <string>
#include <vector>

#include "harness/plugin/kverify_engine.h"
#include "kvattn/attention.h"
#include "kvattn/engine.h"

namespace kvattn {

/// Puts the text of a status into `why`.
kv_status answer(const Status& status, kv_error* why);

/// Ok, or why such stores are not made. No device work.
Status check_backend(const StoreSize& size, const AttentionShape& shape);
StatusOr<std::unique_ptr<Store>> make_backend(const StoreSize& size, const AttentionShape& shape,
                                              const HeadInputs& heads);

/// Asks kverify for Q, K and V, token by token.
class StubModel final : public Model {
 public:
  StubModel(const kv_engine_config& config, const SlotLayout& layout);
  /// The step that project() is about to be called for; it must live until then.
  void begin(const kv_step* step) { step_ = step; }
  Status project(const LayerCall& call) override;

 private:
  Status fill_scales(const kv_token& token, int64_t row);
  Status fill(const kv_token& token, void* q, void* k, void* v);

  kv_fill_qkv fill_qkv_;
  kv_fill_scales fill_scales_;
  void* harness_;
  SlotLayout layout_;
  bool is_dependent_;  // what a layer is asked for depends on outputs of the one before
  const kv_step* step_ = nullptr;
  std::vector<std::byte> query_, key_, value_;    // of one layer
  std::vector<float> key_scales_, value_scales_;  // of each row of K and V
  std::vector<float> head_scales_;                // of K, then V, of one token
};

/// kv_snapshot and all that it points to.
class SnapshotArrays {
 public:
  kv_snapshot fill(CacheSnapshot snapshot, const PagedCache& cache,
                   std::span<const SlotCopy> copies);

 private:
  std::vector<int32_t>& keep(std::vector<int32_t> numbers);

  CacheSnapshot snapshot_;
  std::vector<std::vector<int32_t>> numbers_;  // tables and pages that structs point to
  std::vector<uint32_t> free_, fenced_, cached_, host_free_;
  std::vector<uint64_t> in_flight_;
  std::vector<kv_snapshot_request> requests_;
  std::vector<kv_snapshot_prefix> prefixes_;
  std::vector<kv_snapshot_copy> copies_;
};

const kv_engine_level& engine_level();

}  // namespace kvattn
