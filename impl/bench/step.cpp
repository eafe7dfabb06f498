#include "impl/bench/step.h"

#include <numeric>

namespace kvattn::bench {
namespace {

template <class T>
T checked(StatusOr<T> value) {
  if (!value.ok()) fail(value.status().text());
  return *std::move(value);
}

TensorView cache_view(const Workload& w, int64_t pages, void* data) {
  const int64_t slots = shape_of(w).page_slots, heads = w.kv_heads, dim = w.head_dim;
  TensorView view = dense_view(data, w.cache, {pages, slots, heads, dim}, 4);
  if (w.heads_outside) view.strides = {slots * heads * dim, dim, slots * dim, 1};
  return view;
}

/// A fixed permutation that leaves no two neighbours together.
std::vector<int32_t> shuffled_pages(int64_t pages) {
  int64_t step = pages / 2 + 1;
  while (std::gcd(pages, step) != 1) ++step;
  std::vector<int32_t> order(pages);
  for (int64_t i = 0; i < pages; ++i) order[i] = static_cast<int32_t>(i * step % pages);
  return order;
}

std::vector<int32_t> query_offsets(const Workload& w) {
  std::vector<int32_t> offsets;
  for (int64_t b = 0; b <= w.requests; ++b) offsets.push_back(static_cast<int32_t>(b * w.queries));
  return offsets;
}

}  // namespace

uint32_t multiprocessors() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
        "cudaDeviceGetAttribute");
  return static_cast<uint32_t>(count);
}

Step::Step(const Workload& w, uint32_t multiprocessors, int64_t copies) : shape_(shape_of(w)) {
  const int64_t table = (w.slots + shape_.page_slots - 1) / shape_.page_slots;
  const int64_t pages = table * w.requests, tokens = w.requests * w.queries;
  const uint64_t cache_bytes =
      pages * shape_.page_slots * w.kv_heads * w.head_dim * dtype_bytes(w.cache);
  const uint64_t query_bytes = tokens * w.query_heads * w.head_dim * dtype_bytes(DType::kF16);
  const std::vector<int32_t> query_lengths(w.requests, w.queries), kv_lengths(w.requests, w.slots);
  plan_ = checked(
      make_plan(shape_, {.query_lengths = query_lengths,
                         .kv_lengths = kv_lengths,
                         .batch_invariant = w.mode == Mode::kInvariant,
                         .multiprocessors = w.mode == Mode::kThroughput ? multiprocessors : 0}));
  call_.query =
      tensor({tokens, w.query_heads, w.head_dim}, DType::kF16, allocate_numbers(query_bytes));
  call_.output = zeros({tokens, w.query_heads, w.value_dim()}, DType::kF16);
  call_.lse = zeros({tokens, w.query_heads}, DType::kF32);
  call_.query_offsets = indices(query_offsets(w));
  call_.kv_lengths = call_.key_end = indices(kv_lengths);
  call_.key_begin = indices(std::vector<int32_t>(w.requests, 0));
  call_.workspace = keep(allocate(plan_.workspace_bytes));
  call_.cache.block_table = indices(shuffled_pages(pages));
  call_.cache.block_table.rank = 2;
  call_.cache.block_table.shape = {w.requests, table};
  call_.cache.block_table.strides = {table, 1};
  take_scales(w, pages);
  if (w.has_hidden_runs) take_mask(w);
  for (int64_t i = 0; i < copies; ++i) {
    const TensorView key = cache_view(w, pages, keep(allocate_numbers(cache_bytes)));
    TensorView value = key;
    if (w.is_latent()) {
      value.shape[3] = w.value_dim();
    } else {
      value.data = keep(allocate_numbers(cache_bytes));
    }
    caches_.push_back({key, value});
  }
}

void Step::launch(int64_t run) {
  const Cache& cache = caches_[run % caches_.size()];
  call_.cache.key = cache.key;
  call_.cache.value = cache.value;
  if (const Status status = attend(call_, plan_, shape_); !status.ok()) fail(status.text());
}

void Step::take_mask(const Workload& w) {
  std::vector<uint8_t> keeps(w.slots);
  for (int64_t slot = 0; slot < w.slots; ++slot) keeps[slot] = slot / kHiddenRun % 2 == 0;
  call_.mask = zeros({1, 1, 1, w.slots}, DType::kBool);
  check(cudaMemcpy(call_.mask.data, keeps.data(), keeps.size(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
}

/// K's and V's scales, which lie apart, all 2^-6: sums stay far from the limits of fp16.
void Step::take_scales(const Workload& w, int64_t pages) {
  constexpr int32_t kScaleBits = 0x3c800000;
  std::vector<int64_t> shape;
  switch (w.scales) {
    case ScaleGranularity::kNone:
      return;
    case ScaleGranularity::kTensor:
      shape = {1};
      break;
    case ScaleGranularity::kHead:
      shape = {w.kv_heads};
      break;
    case ScaleGranularity::kToken:
      shape = {pages, shape_.page_slots};
      break;
    case ScaleGranularity::kPage:
      shape = {pages};
      break;
  }
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies());
  const std::vector<int32_t> bits(count, kScaleBits);
  call_.cache.key_scale = tensor(shape, DType::kF32, upload(bits));
  call_.cache.value_scale = tensor(shape, DType::kF32, upload(bits));
}

void* Step::keep(DeviceMemory memory) {
  memory_.push_back(std::move(memory));
  return memory_.back().get();
}

TensorView Step::tensor(std::vector<int64_t> shape, DType dtype, DeviceMemory memory) {
  std::array<int64_t, 4> extents = {};
  for (size_t i = 0; i < shape.size(); ++i) extents[i] = shape[i];
  return dense_view(keep(std::move(memory)), dtype, extents, static_cast<int>(shape.size()));
}

TensorView Step::zeros(std::vector<int64_t> shape, DType dtype) {
  uint64_t bytes = dtype_bytes(dtype);
  for (int64_t extent : shape) bytes *= extent;
  return tensor(std::move(shape), dtype, allocate(bytes));
}

TensorView Step::indices(const std::vector<int32_t>& values) {
  return tensor({static_cast<int64_t>(values.size())}, DType::kI32, upload(values));
}

}  // namespace kvattn::bench
