#include "kvattn/cuda_store.h"

#include <algorithm>

#include "impl/engine/cache_scales.h"
#include "impl/engine/slot_copies.h"
#include "impl/engine/step_buffers.h"
#include "kvattn/pool.h"

namespace kvattn {
namespace {

Status from_cuda(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return failed(what, ": CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error),
                ")");
}

class Events {
 public:
  Status create() {
    for (cudaEvent_t& event : events_) {
      KVATTN_RETURN_IF_ERROR(
          from_cuda("event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
    }
    return {};
  }
  ~Events() {
    for (cudaEvent_t event : events_) {
      if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
    }
  }
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  cudaEvent_t of(StepNumber step) const { return events_[index_of(step) % events_.size()]; }

 private:
  std::array<cudaEvent_t, kStepsInFlightMax> events_ = {};
};

class CudaStore final : public Store {
 public:
  CudaStore(const StoreSize& size, const AttentionShape& shape, const CudaStoreOptions& options,
            KvPool pool, CacheScales scales, StepBuffers buffers, std::vector<BlockTable> tables)
      : size_(size),
        shape_(shape),
        stream_(options.stream),
        batch_invariant_(options.batch_invariant),
        pool_(std::move(pool)),
        scales_(std::move(scales)),
        buffers_(std::move(buffers)),
        tables_(std::move(tables)) {
    layers_ = std::ranges::max(size.groups, {}, &LayerGroup::layers).layers;
    host_layer_bytes_ = size.page_slots * (size.layout.stored_key + size.layout.stored_value);
    host_page_bytes_ = layers_ * (host_layer_bytes_ + scales_.page_bytes());
    host_.resize(size.host_pages.value * host_page_bytes_);
    table_rows_.reserve(2 * size.batch_slots + 1);
  }
  Status create(const HeadInputs& heads) {
    KVATTN_RETURN_IF_ERROR(to_device(heads.alibi_slopes, slopes_));
    KVATTN_RETURN_IF_ERROR(to_device(heads.sinks, sinks_));
    return events_.create();
  }
  // Nobody may free memory under work that is still running.
  ~CudaStore() override { static_cast<void>(cudaStreamSynchronize(stream_)); }

  SlotLayout layout() const override { return size_.layout; }
  const CacheFormat& format() const override { return size_.format; }

  Status check(const Batch& batch) override {
    if (!batch.attends || batch.queries == 0) return {};
    buffers_.lay_out(batch);
    StatusOr<Plan> plan = plan_of_batch();
    if (plan.ok() && plan->workspace_bytes > buffers_.workspace_bytes()) {
      return exhausted("step: expected a workspace of at most ", buffers_.workspace_bytes(),
                       " bytes, got ", plan->workspace_bytes);
    }
    return plan.status();
  }

  Status copy(std::span<const SlotCopy> copies) override {
    const Rows first = rows(Page{0}, 0, 0), next = rows(Page{0}, 0, layers_ > 1 ? 1 : 0);
    return copy_slots(copies, size_,
                      {.key = first.key,
                       .value = first.value,
                       .layer_bytes = static_cast<char*>(next.key) - static_cast<char*>(first.key),
                       .key_scale = scales_.move() ? scales_.of_page_zero(false) : nullptr,
                       .value_scale = scales_.move() ? scales_.of_page_zero(true) : nullptr,
                       .scale_layer_bytes = scales_.layer_bytes()},
                      stream_);
  }

  Status to_host(std::span<const HostCopy> copies) override {
    for (const HostCopy& c : copies) {
      for (int32_t layer = 0; layer < size_.groups[index_of(c.group)].layers; ++layer) {
        KVATTN_RETURN_IF_ERROR(move_rows(host_rows(c.host_page, layer), rows(c.page, 0, layer),
                                         c.slots, cudaMemcpyDeviceToHost));
        KVATTN_RETURN_IF_ERROR(
            scales_.to_host(host_scales(c.host_page, layer), scales_of(c, layer), stream_));
      }
    }
    return {};
  }
  Status from_host(std::span<const HostCopy> copies) override {
    // Copies from pageable memory read it at once: what is still on its way there must have
    // arrived.
    KVATTN_RETURN_IF_ERROR(from_cuda("resume", cudaStreamSynchronize(stream_)));
    for (const HostCopy& c : copies) {
      for (int32_t layer = 0; layer < size_.groups[index_of(c.group)].layers; ++layer) {
        KVATTN_RETURN_IF_ERROR(move_rows(rows(c.page, 0, layer), host_rows(c.host_page, layer),
                                         c.slots, cudaMemcpyHostToDevice));
        KVATTN_RETURN_IF_ERROR(
            scales_.from_host(scales_of(c, layer), host_scales(c.host_page, layer), stream_));
      }
    }
    return {};
  }

  StatusOr<StepTensors> begin(const Batch& batch) override;
  Status upload(void* to, const void* from, ByteCount bytes) override {
    return move(to, from, bytes.value, cudaMemcpyHostToDevice);
  }
  Status append(int32_t layer) override;
  Status attend(int32_t layer, const LayerResult& result) override;

  Status finish() override { return from_cuda("step", cudaStreamSynchronize(stream_)); }
  Status mark(StepNumber step) override {
    return from_cuda("step", cudaEventRecord(events_.of(step), stream_));
  }
  Status wait(StepNumber step) override {
    return from_cuda("step", cudaEventSynchronize(events_.of(step)));
  }

  Status read(const SlotPlace& place, const SlotBytes& out) override {
    const Rows from = rows(place.page, place.slot, place_of(place.layer).layer);
    const auto slots = static_cast<int32_t>(place.slots);
    KVATTN_RETURN_IF_ERROR(move_rows({out.key, out.value}, from, slots, cudaMemcpyDeviceToHost));
    KVATTN_RETURN_IF_ERROR(scales_.read(scales_of(place), out, stream_));
    return from_cuda("read", cudaStreamSynchronize(stream_));
  }
  Status write(const SlotPlace& place, const ConstSlotBytes& bytes) override {
    const Rows to = rows(place.page, place.slot, place_of(place.layer).layer);
    const SlotLayout& layout = size_.layout;
    KVATTN_RETURN_IF_ERROR(move(to.key, bytes.key, layout.stored_key, cudaMemcpyHostToDevice));
    KVATTN_RETURN_IF_ERROR(
        move(to.value, bytes.value, layout.stored_value, cudaMemcpyHostToDevice));
    return scales_.write(scales_of(place), bytes, stream_);
  }

 private:
  struct Rows {
    void *key, *value;
  };
  struct LayerPlace {
    int32_t group, layer;  // the latter within the group
  };
  LayerPlace place_of(int32_t layer) const {
    int32_t group = 0;
    while (layer >= size_.groups[group].layers) layer -= size_.groups[group++].layers;
    return {group, layer};
  }
  /// Slots of a page, one after the other.
  Rows rows(Page page, int64_t slot, int32_t layer) const {
    const CacheView cache = *pool_.layer(layer, tables_[0]);
    const int64_t at = index_of(page) * size_.page_slots + slot;
    return {static_cast<char*>(cache.key.data) + at * size_.layout.stored_key,
            static_cast<char*>(cache.value.data) + at * size_.layout.stored_value};
  }
  Rows host_rows(HostPage page, int32_t layer) {
    char* key = host_.data() + index_of(page) * host_page_bytes_ + layer * host_layer_bytes_;
    return {key, key + size_.page_slots * size_.layout.stored_key};
  }
  /// Behind the rows of all layers.
  char* host_scales(HostPage page, int32_t layer) {
    return host_.data() + index_of(page) * host_page_bytes_ + layers_ * host_layer_bytes_ +
           layer * scales_.page_bytes();
  }
  /// Of a page that goes to the host or comes from it.
  static CacheScales::Place scales_of(const HostCopy& copy, int32_t layer) {
    return {.page = copy.page, .slots = copy.slots, .layer = {.of_pool = layer}};
  }
  CacheScales::Place scales_of(const SlotPlace& place) const {
    return {.page = place.page,
            .slot = place.slot,
            .slots = place.slots,
            .layer = {.of_model = place.layer, .of_pool = place_of(place.layer).layer}};
  }
  StatusOr<CacheView> cache_of(int32_t layer) const {
    const LayerPlace place = place_of(layer);
    StatusOr<CacheView> cache = pool_.layer(place.layer, tables_[place.group]);
    if (cache.ok()) scales_.add_to(*cache, {.of_model = layer, .of_pool = place.layer});
    return cache;
  }
  Status to_device(const std::vector<float>& values, DeviceMemory& memory) {
    if (values.empty()) return {};
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    StatusOr<DeviceMemory> made = allocate_device(bytes);
    if (!made.ok()) return made.status();
    memory = *std::move(made);
    return from_cuda("heads", cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(float),
                                         cudaMemcpyHostToDevice));
  }
  /// Of one layer; no data when they are not used.
  TensorView heads_of(const DeviceMemory& values, int32_t layer) const {
    if (values.get() == nullptr) return {};
    return dense_view(static_cast<float*>(values.get()) + layer * shape_.query_heads, DType::kF32,
                      {shape_.query_heads}, 1);
  }
  Status move(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return {};
    return from_cuda("copy", cudaMemcpyAsync(to, from, bytes, kind, stream_));
  }
  Status move_rows(const Rows& to, const Rows& from, int32_t slots, cudaMemcpyKind kind) {
    KVATTN_RETURN_IF_ERROR(move(to.key, from.key, slots * size_.layout.stored_key, kind));
    return move(to.value, from.value, slots * size_.layout.stored_value, kind);
  }
  AttentionShape shape_of(int32_t group) const {
    AttentionShape shape = shape_;
    shape.window_left = size_.groups[group].window_left;
    return shape;
  }
  StatusOr<Plan> plan_of_batch() const {
    return make_plan(shape_, {.query_lengths = buffers_.query_lengths(),
                              .kv_lengths = buffers_.kv_lengths(),
                              .batch_invariant = batch_invariant_});
  }

  StoreSize size_;
  AttentionShape shape_;
  cudaStream_t stream_;
  bool batch_invariant_;
  KvPool pool_;
  CacheScales scales_;
  StepBuffers buffers_;
  DeviceMemory slopes_, sinks_;     // [layers][query_heads]
  std::vector<BlockTable> tables_;  // [group]
  std::vector<std::span<const Page>> table_rows_;
  Events events_;
  std::vector<char> host_;
  int64_t layers_ = 0;  // of the largest group
  int64_t host_layer_bytes_ = 0, host_page_bytes_ = 0;
  Plan plan_;
  Batch batch_;
};

StatusOr<StepTensors> CudaStore::begin(const Batch& batch) {
  batch_ = batch;
  buffers_.lay_out(batch);
  const auto groups = static_cast<int32_t>(size_.groups.size());
  for (int32_t g = 0; g < groups; ++g) {
    table_rows_.clear();
    for (const auto& r : buffers_.device_rows()) {
      table_rows_.push_back(r.row == nullptr ? std::span<const Page>() : r.row->tables[g]);
    }
    KVATTN_RETURN_IF_ERROR(tables_[g].upload(table_rows_, stream_));
  }
  KVATTN_RETURN_IF_ERROR(buffers_.send(groups, stream_));
  if (batch.attends && batch.queries > 0) {
    StatusOr<Plan> plan = plan_of_batch();
    if (!plan.ok()) return plan.status();
    plan_ = *plan;
  }
  return buffers_.tensors();
}

Status CudaStore::append(int32_t layer) {
  if (batch_.appended == 0) return {};
  StatusOr<CacheView> cache = cache_of(layer);
  if (!cache.ok()) return cache.status();
  const AttentionShape shape = shape_of(place_of(layer).group);
  AppendCall call = buffers_.append_call(*cache, shape);
  call.stream = stream_;
  const StepTensors tensors = buffers_.tensors();
  KVATTN_RETURN_IF_ERROR(scales_.place(call, tensors.key_scales, tensors.value_scales));
  return kvattn::append(call, shape);
}

Status CudaStore::attend(int32_t layer, const LayerResult& result) {
  if (batch_.queries == 0) return {};
  StatusOr<CacheView> cache = cache_of(layer);
  if (!cache.ok()) return cache.status();
  const int32_t group = place_of(layer).group;
  const AttentionShape shape = shape_of(group);
  AttendCall call = buffers_.attend_call(*cache, shape, group);
  call.alibi_slopes = heads_of(slopes_, layer);
  call.sinks = heads_of(sinks_, layer);
  call.stream = stream_;
  KVATTN_RETURN_IF_ERROR(kvattn::attend(call, plan_, shape));
  const int64_t lse_bytes = size_.layout.query_heads * int64_t{sizeof(float)};
  int64_t done = 0;
  for (const BatchRow& row : batch_.rows) {
    KVATTN_RETURN_IF_ERROR(
        move(static_cast<char*>(result.output) + done * size_.layout.output,
             static_cast<const char*>(buffers_.output()) + row.query_begin * size_.layout.output,
             row.queries * size_.layout.output, cudaMemcpyDeviceToHost));
    KVATTN_RETURN_IF_ERROR(move(result.lse + done * size_.layout.query_heads,
                                buffers_.lse() + row.query_begin * size_.layout.query_heads,
                                row.queries * lse_bytes, cudaMemcpyDeviceToHost));
    done += row.queries;
  }
  return {};
}

}  // namespace

Status check_cuda_store(const StoreSize& size, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_shape(shape));
  for (const LayerGroup& group : size.groups) {
    AttentionShape windowed = shape;
    windowed.window_left = group.window_left;
    KVATTN_RETURN_IF_ERROR(check_shape(windowed));
  }
  if (shape.page_slots != size.page_slots) {
    return refused("store: expected pages of ", shape.page_slots, " slots, got ", size.page_slots);
  }
  return {};
}

StatusOr<std::unique_ptr<Store>> make_cuda_store(const StoreSize& size, const AttentionShape& shape,
                                                 const CudaStoreOptions& options) {
  KVATTN_RETURN_IF_ERROR(check_cuda_store(size, shape));
  const int64_t layers = std::ranges::max(size.groups, {}, &LayerGroup::layers).layers;
  StatusOr<KvPool> pool = KvPool::create(shape, {.layers = layers, .pages = size.pages.value});
  if (!pool.ok()) return pool.status();
  StatusOr<CacheScales> scales = CacheScales::create(size);
  if (!scales.ok()) return scales.status();
  StatusOr<StepBuffers> buffers = StepBuffers::create(size, shape, options.batch_invariant);
  if (!buffers.ok()) return buffers.status();
  std::vector<BlockTable> tables;
  for (size_t g = 0; g < size.groups.size(); ++g) {
    StatusOr<BlockTable> table =
        BlockTable::create({.requests = 2 * size.batch_slots + 1,
                            .pages_max = pages_for(size.context_limit, size.page_slots).value});
    if (!table.ok()) return table.status();
    tables.push_back(*std::move(table));
  }
  auto store =
      std::make_unique<CudaStore>(size, shape, options, *std::move(pool), *std::move(scales),
                                  *std::move(buffers), std::move(tables));
  KVATTN_RETURN_IF_ERROR(store->create(options.heads));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace kvattn
