#include "impl/engine/step_buffers.h"

#include <algorithm>

namespace kvattn {
namespace {

Status allocate(DeviceMemory& memory, int64_t bytes) {
  StatusOr<DeviceMemory> made = allocate_device(std::max<int64_t>(bytes, 1));
  if (made.ok()) memory = *std::move(made);
  return made.status();
}

/// Of the widest batch of decode rows, which alone divide their slots; or of the widest of all,
/// where every row does, or where queries are turned on their way.
StatusOr<uint64_t> workspace_of(const StoreSize& size, const AttentionShape& shape,
                                bool batch_invariant) {
  const std::vector<int32_t> slots(2 * size.batch_slots,
                                   static_cast<int32_t>(size.context_limit.value));
  const auto widest = static_cast<int32_t>(size.step_slots_max.value);
  const bool turns = shape.rope.pairing != Rope::Pairing::kNone;
  uint64_t bytes = 0;
  for (const int32_t queries : {1, widest}) {
    if (queries == 1 ? batch_invariant : !batch_invariant && !turns) continue;
    const std::vector<int32_t> lengths(2 * size.batch_slots, queries);
    StatusOr<Plan> plan = make_plan(
        shape, {.query_lengths = lengths, .kv_lengths = slots, .batch_invariant = batch_invariant});
    if (!plan.ok()) return plan.status();
    bytes += plan->workspace_bytes;
  }
  return bytes;
}

}  // namespace

StatusOr<StepBuffers> StepBuffers::create(const StoreSize& size, const AttentionShape& shape,
                                          bool batch_invariant) {
  StatusOr<uint64_t> workspace = workspace_of(size, shape, batch_invariant);
  if (!workspace.ok()) return workspace.status();
  StepBuffers b;
  b.workspace_bytes_ = *workspace;
  const int64_t tokens = size.batch_slots * size.step_slots_max.value;
  const int64_t rows = 2 * size.batch_slots + 1;
  const int64_t numbers = (5 + std::ssize(size.groups)) * (rows + 1);
  const int64_t tree_words = (std::min(size.step_slots_max.value, kTreeSlotsMax) + 31) / 32;
  KVATTN_RETURN_IF_ERROR(allocate(b.query_, tokens * size.layout.query));
  KVATTN_RETURN_IF_ERROR(allocate(b.key_, tokens * size.layout.key));
  KVATTN_RETURN_IF_ERROR(allocate(b.value_, tokens * size.layout.value));
  KVATTN_RETURN_IF_ERROR(allocate(b.output_, tokens * size.layout.output));
  KVATTN_RETURN_IF_ERROR(allocate(b.lse_, tokens * size.layout.query_heads * 4));
  KVATTN_RETURN_IF_ERROR(allocate(b.workspace_, static_cast<int64_t>(*workspace)));
  KVATTN_RETURN_IF_ERROR(allocate(b.numbers_, numbers * 4));
  KVATTN_RETURN_IF_ERROR(allocate(b.trees_, tokens * tree_words * 4));
  if (size.format.has_slot_scales()) {
    KVATTN_RETURN_IF_ERROR(allocate(b.key_scales_, tokens * int64_t{sizeof(float)}));
    KVATTN_RETURN_IF_ERROR(allocate(b.value_scales_, tokens * int64_t{sizeof(float)}));
  }
  if (shape.rope.pairing != Rope::Pairing::kNone) {
    b.positions_max_ = tokens;
    b.append_positions_.reserve(tokens);
    b.query_positions_.reserve(tokens);
    KVATTN_RETURN_IF_ERROR(allocate(b.positions_, 2 * tokens * int64_t{sizeof(int64_t)}));
  }
  // PAD rows of Q are read, whatever they hold.
  if (cudaError_t error = cudaMemset(b.query_.get(), 0, tokens * size.layout.query);
      error != cudaSuccess) {
    return failed("step buffers: ", cudaGetErrorString(error));
  }
  b.device_rows_.reserve(rows);
  b.query_lengths_.reserve(rows);
  b.kv_lengths_.reserve(rows);
  b.staging_.reserve(numbers);
  b.tree_first_slots_.reserve(rows);
  b.tree_masks_.reserve(tokens * tree_words);
  return b;
}

void StepBuffers::lay_out(const Batch& batch) {
  device_rows_.clear();
  query_lengths_.clear();
  kv_lengths_.clear();
  int64_t next = 0;  // row of the Q tensor
  const auto pad_up_to = [&](int64_t row) {
    if (row > next) device_rows_.push_back({.row = nullptr, .queries = row - next});
    next = row;
  };
  for (const BatchRow& row : batch.rows) {
    if (batch.attends) pad_up_to(row.query_begin);
    device_rows_.push_back({.row = &row, .queries = row.queries});
    next += row.queries;
  }
  pad_up_to(batch.queries);
  for (const DeviceRow& r : device_rows_) {
    query_lengths_.push_back(static_cast<int32_t>(r.queries));
    kv_lengths_.push_back(r.row == nullptr ? 0 : static_cast<int32_t>(r.row->length()));
  }
  appended_ = batch.appended;
  queries_ = batch.queries;
  lay_out_trees(batch);
  lay_out_positions(batch);
}

// PAD rows stand at 0: nothing comes of them.
void StepBuffers::lay_out_positions(const Batch& batch) {
  if (positions_max_ == 0) return;
  append_positions_.assign(batch.appended, 0);
  query_positions_.assign(batch.queries, 0);
  for (const BatchRow& row : batch.rows) {
    for (int64_t i = 0; i < row.appended; ++i) {
      append_positions_[row.append_begin + i] = row.position(row.first_slot + i);
    }
    for (int64_t i = 0; i < row.queries; ++i) {
      query_positions_[row.query_begin + i] = row.position(row.length() - row.queries + i);
    }
  }
}

Status StepBuffers::send_positions(cudaStream_t stream) {
  auto* to = static_cast<int64_t*>(positions_.get());
  for (const auto* from : {&append_positions_, &query_positions_}) {
    const cudaError_t sent = cudaMemcpyAsync(to, from->data(), from->size() * sizeof(int64_t),
                                             cudaMemcpyHostToDevice, stream);
    if (sent != cudaSuccess) return failed("step buffers: ", cudaGetErrorString(sent));
    to += positions_max_;
  }
  return {};
}

// Bit k of a query's words: does it see the row's k-th appended slot? What came before is seen
// anyway. Rows without a tree begin theirs behind their last slot.
void StepBuffers::lay_out_trees(const Batch& batch) {
  tree_words_ = 0;
  for (const BatchRow& row : batch.rows) {
    tree_words_ = std::max<int64_t>(tree_words_, (std::ssize(row.tree_parents) + 31) / 32);
  }
  tree_masks_.assign(tree_words_ * batch.queries, 0);
  tree_first_slots_.clear();
  for (const DeviceRow& r : device_rows_) {
    const int64_t length = r.row == nullptr ? 0 : r.row->length();
    const bool is_tree = r.row != nullptr && !r.row->tree_parents.empty();
    tree_first_slots_.push_back(static_cast<int32_t>(is_tree ? r.row->first_slot : length));
    if (!is_tree) continue;
    for (int64_t q = 0; q < r.row->queries; ++q) {
      uint32_t* words = tree_masks_.data() + (r.row->query_begin + q) * tree_words_;
      auto at = static_cast<int32_t>(length - r.row->queries + q - r.row->first_slot);
      for (; at >= 0; at = r.row->tree_parents[at]) words[at / 32] |= uint32_t{1} << at % 32;
    }
  }
}

Status StepBuffers::send(int groups, cudaStream_t stream) {
  groups_ = groups;
  staging_.clear();
  int32_t tokens = 0, queries = 0;
  staging_.push_back(0);
  for (const DeviceRow& r : device_rows_) {
    tokens += r.row == nullptr ? 0 : static_cast<int32_t>(r.row->appended);
    staging_.push_back(tokens);
  }
  staging_.push_back(0);
  for (const DeviceRow& r : device_rows_) {
    queries += static_cast<int32_t>(r.queries);
    staging_.push_back(queries);
  }
  for (const DeviceRow& r : device_rows_) {
    staging_.push_back(r.row == nullptr ? 0 : static_cast<int32_t>(r.row->first_slot));
  }
  staging_.insert(staging_.end(), kv_lengths_.begin(), kv_lengths_.end());
  for (int g = 0; g < groups; ++g) {
    for (const DeviceRow& r : device_rows_) {
      staging_.push_back(r.row == nullptr ? 0 : static_cast<int32_t>(r.row->kept_from[g]));
    }
  }
  staging_.insert(staging_.end(), tree_first_slots_.begin(), tree_first_slots_.end());
  if (!tree_masks_.empty()) {
    const cudaError_t sent = cudaMemcpyAsync(
        trees_.get(), tree_masks_.data(), 4 * tree_masks_.size(), cudaMemcpyHostToDevice, stream);
    if (sent != cudaSuccess) return failed("step buffers: ", cudaGetErrorString(sent));
  }
  if (positions_max_ > 0) KVATTN_RETURN_IF_ERROR(send_positions(stream));
  const cudaError_t error = cudaMemcpyAsync(numbers_.get(), staging_.data(), 4 * staging_.size(),
                                            cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return failed("step buffers: ", cudaGetErrorString(error));
  return {};
}

TensorView StepBuffers::numbers_view(int64_t first, int64_t count) const {
  return dense_view(static_cast<int32_t*>(numbers_.get()) + first, DType::kI32, {count}, 1);
}

AppendCall StepBuffers::append_call(const CacheView& cache, const AttentionShape& shape) const {
  const int64_t rows = std::ssize(device_rows_);
  const TensorView positions = positions_max_ == 0
                                   ? TensorView()
                                   : dense_view(positions_.get(), DType::kI64, {appended_}, 1);
  return {
      .cache = cache,
      .key = dense_view(key_.get(), shape.dtype, {appended_, shape.kv_heads, shape.head_dim}, 3),
      .value =
          dense_view(value_.get(), shape.dtype, {appended_, shape.kv_heads, shape.head_dim}, 3),
      .token_offsets = numbers_view(0, rows + 1),
      .first_slots = numbers_view(2 * (rows + 1), rows),
      .positions = positions};
}

AttendCall StepBuffers::attend_call(const CacheView& cache, const AttentionShape& shape,
                                    int group) const {
  const int64_t rows = std::ssize(device_rows_);
  const int64_t lengths = 2 * (rows + 1) + rows;
  AttendCall call;
  call.cache = cache;
  call.query =
      dense_view(query_.get(), shape.dtype, {queries_, shape.query_heads, shape.head_dim}, 3);
  call.query_offsets = numbers_view(rows + 1, rows + 1);
  call.kv_lengths = numbers_view(lengths, rows);
  call.key_begin = numbers_view(lengths + (1 + group) * rows, rows);
  call.key_end = numbers_view(lengths, rows);
  call.output =
      dense_view(output_.get(), shape.dtype, {queries_, shape.query_heads, shape.head_dim}, 3);
  call.lse = dense_view(lse_.get(), DType::kF32, {queries_, shape.query_heads}, 2);
  call.workspace = workspace_.get();
  if (positions_max_ > 0) {
    call.positions = dense_view(static_cast<int64_t*>(positions_.get()) + positions_max_,
                                DType::kI64, {queries_}, 1);
  }
  if (tree_words_ > 0) {
    call.tree_mask = dense_view(trees_.get(), DType::kU32, {queries_, tree_words_}, 2);
    call.tree_first_slots = numbers_view(lengths + (1 + groups_) * rows, rows);
  }
  return call;
}

}  // namespace kvattn
