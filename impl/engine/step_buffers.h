// Purpose: the device tensors of a step: Q, K, V, O, LSE, workspace, and the numbers that describe
// the batch to the kernels.
// Contract: made once, for the widest batch; PAD rows of the Q tensor belong to requests of their
// own, without slots, so that the kernels need know nothing of padded layouts.
// Example:  buffers.describe(batch, stream); buffers.append_call(cache, shape);
#pragma once

#include <vector>

#include "kvattn/attention.h"
#include "kvattn/pool.h"
#include "kvattn/store.h"

namespace kvattn {

class StepBuffers {
 public:
  static StatusOr<StepBuffers> create(const StoreSize& size, const AttentionShape& shape,
                                      bool batch_invariant);

  /// Rows of the batch as the kernels see them: requests, and PAD rows between them.
  struct DeviceRow {
    const BatchRow* row = nullptr;  // nullptr: PAD
    int64_t queries = 0;
  };
  /// Lays out the batch; host work alone. Query and KV lengths are for make_plan.
  void lay_out(const Batch& batch);
  std::span<const DeviceRow> device_rows() const { return device_rows_; }
  std::span<const int32_t> query_lengths() const { return query_lengths_; }
  std::span<const int32_t> kv_lengths() const { return kv_lengths_; }

  /// Sends the description of the batch that was laid out.
  Status send(int groups, cudaStream_t stream);

  AppendCall append_call(const CacheView& cache, const AttentionShape& shape) const;
  AttendCall attend_call(const CacheView& cache, const AttentionShape& shape, int group) const;

  StepTensors tensors() const {
    return {query_.get(), key_.get(), value_.get(), key_scales_.get(), value_scales_.get()};
  }
  const void* output() const { return output_.get(); }
  const float* lse() const { return static_cast<const float*>(lse_.get()); }
  uint64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  TensorView numbers_view(int64_t first, int64_t count) const;
  void lay_out_trees(const Batch& batch);
  void lay_out_positions(const Batch& batch);
  Status send_positions(cudaStream_t stream);

  int64_t appended_ = 0, queries_ = 0;  // of the batch
  int64_t groups_ = 0;                  // whose key begins were sent
  int64_t tree_words_ = 0;              // of each query's mask; 0: the batch has no tree
  DeviceMemory query_, key_, value_, output_, lse_, workspace_, numbers_, trees_;
  DeviceMemory key_scales_, value_scales_;  // of new tokens, where they or pages have scales
  DeviceMemory positions_;     // of the new tokens, then of the queries; only with RoPE
  int64_t positions_max_ = 0;  // of either; 0: without RoPE
  uint64_t workspace_bytes_ = 0;
  std::vector<DeviceRow> device_rows_;
  std::vector<int32_t> query_lengths_, kv_lengths_, tree_first_slots_;
  std::vector<uint32_t> tree_masks_;  // [queries][tree_words_]
  std::vector<int64_t> append_positions_, query_positions_;
  std::vector<int32_t>
      staging_;  // token offsets, query offsets, first slots, KV lengths, key begins, tree slots
};

}  // namespace kvattn
