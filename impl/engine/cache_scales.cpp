#include "impl/engine/cache_scales.h"

#include <algorithm>
#include <bit>

#include "impl/kernels/place_scales.h"

namespace kvattn {
namespace {

Status from_cuda(cudaError_t error) {
  if (error == cudaSuccess) return {};
  return failed("scales: CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error),
                ")");
}

Status move_floats(void* to, const void* from, int64_t count, cudaMemcpyKind kind,
                   cudaStream_t stream) {
  return from_cuda(cudaMemcpyAsync(to, from, count * sizeof(float), kind, stream));
}

const int32_t* numbers_of(const TensorView& view) { return static_cast<int32_t*>(view.data); }

}  // namespace

StatusOr<CacheScales> CacheScales::create(const StoreSize& size) {
  CacheScales scales;
  scales.format_ = size.format;
  scales.pages_ = size.pages.value;
  scales.page_slots_ = size.page_slots;
  if (size.format.has_slot_scales()) {
    const bool by_token = size.format.scales == ScaleGranularity::kToken;
    scales.page_scales_ = by_token ? size.page_slots : 1;
    const int64_t layers = std::ranges::max(size.groups, {}, &LayerGroup::layers).layers;
    StatusOr<DeviceMemory> memory = allocate_device(layers * scales.layer_bytes());
    if (!memory.ok()) return memory.status();
    scales.memory_ = *std::move(memory);
    return scales;
  }
  std::vector<float> both = size.format.key_scales;
  if (both.empty()) return scales;
  scales.model_layers_ = std::ssize(both) / size.format.kv_heads;
  both.insert(both.end(), size.format.value_scales.begin(), size.format.value_scales.end());
  const uint64_t bytes = both.size() * sizeof(float);
  StatusOr<DeviceMemory> memory = allocate_device(bytes);
  if (!memory.ok()) return memory.status();
  scales.constants_ = *std::move(memory);
  KVATTN_RETURN_IF_ERROR(
      from_cuda(cudaMemcpy(scales.constants_.get(), both.data(), bytes, cudaMemcpyHostToDevice)));
  return scales;
}

float* CacheScales::of_page_zero(bool value) const {
  auto* first = static_cast<float*>(memory_.get());
  return value ? first + pages_ * page_scales_ : first;
}

void CacheScales::add_to(CacheView& cache, Layer layer) const {
  for (const bool value : {false, true}) {
    TensorView& view = value ? cache.value_scale : cache.key_scale;
    if (constants_.get() != nullptr) {
      const int64_t heads = format_.kv_heads;
      float* first = static_cast<float*>(constants_.get()) +
                     ((value ? model_layers_ : 0) + layer.of_model) * heads;
      const bool by_head = format_.scales == ScaleGranularity::kHead;
      view = dense_view(first, DType::kF32, {by_head ? heads : 1}, 1);
    } else if (move()) {
      const bool by_token = format_.scales == ScaleGranularity::kToken;
      float* first = at({.page = Page{0}, .layer = layer}, value);
      view = dense_view(first, DType::kF32, {pages_, page_slots_}, by_token ? 2 : 1);
    }
  }
}

Status CacheScales::place(const AppendCall& call, const void* key, const void* value) const {
  const int64_t tokens = call.key.shape[0];
  if (!move() || tokens == 0) return {};
  const PlaceScalesParams params = {
      .key = static_cast<const float*>(key),
      .value = static_cast<const float*>(value),
      .key_scale = static_cast<float*>(call.cache.key_scale.data),
      .value_scale = static_cast<float*>(call.cache.value_scale.data),
      .block_table = numbers_of(call.cache.block_table),
      .token_offsets = numbers_of(call.token_offsets),
      .first_slots = numbers_of(call.first_slots),
      .block_table_stride = call.cache.block_table.strides[0],
      .tokens = static_cast<int32_t>(tokens),
      .requests = static_cast<int32_t>(call.first_slots.shape[0]),
      .page_shift = std::countr_zero(static_cast<uint64_t>(page_slots_)),
      .by_page = format_.scales == ScaleGranularity::kPage};
  return from_cuda(launch_place_scales(params, call.stream));
}

float* CacheScales::at(const Place& place, bool value) const {
  const int64_t page = index_of(place.page) * page_scales_;
  const bool by_token = format_.scales == ScaleGranularity::kToken;
  return of_page_zero(value) + place.layer.of_pool * 2 * pages_ * page_scales_ + page +
         (by_token ? place.slot : 0);
}

/// Scales that the slots of a place have between them.
int64_t CacheScales::count_at(const Place& place) const {
  return format_.scales == ScaleGranularity::kToken ? place.slots : 1;
}

Status CacheScales::to_host(void* host, const Place& place, cudaStream_t stream) const {
  if (!move()) return {};
  auto* to = static_cast<float*>(host);
  for (const bool value : {false, true}) {
    KVATTN_RETURN_IF_ERROR(move_floats(to + (value ? page_scales_ : 0), at(place, value),
                                       count_at(place), cudaMemcpyDeviceToHost, stream));
  }
  return {};
}

Status CacheScales::from_host(const Place& place, const void* host, cudaStream_t stream) const {
  if (!move()) return {};
  const auto* from = static_cast<const float*>(host);
  for (const bool value : {false, true}) {
    KVATTN_RETURN_IF_ERROR(move_floats(at(place, value), from + (value ? page_scales_ : 0),
                                       count_at(place), cudaMemcpyHostToDevice, stream));
  }
  return {};
}

Status CacheScales::read(const Place& place, const SlotBytes& out, cudaStream_t stream) const {
  if (out.key_scales == nullptr || format_.scales == ScaleGranularity::kNone) return {};
  const int64_t heads = format_.kv_heads;
  std::vector<float> held[2];
  for (const bool value : {false, true}) {
    if (!move()) continue;
    held[value].resize(count_at(place));
    KVATTN_RETURN_IF_ERROR(move_floats(held[value].data(), at(place, value), count_at(place),
                                       cudaMemcpyDeviceToHost, stream));
  }
  KVATTN_RETURN_IF_ERROR(from_cuda(cudaStreamSynchronize(stream)));
  for (const bool value : {false, true}) {
    auto* to = static_cast<float*>(value ? out.value_scales : out.key_scales);
    const std::vector<float>& constant = value ? format_.value_scales : format_.key_scales;
    for (int64_t i = 0; i < place.slots * heads; ++i) {
      to[i] = move() ? held[value][std::min(i / heads, count_at(place) - 1)]
                     : constant[place.layer.of_model * heads + i % heads];
    }
  }
  return {};
}

Status CacheScales::write(const Place& place, const ConstSlotBytes& bytes,
                          cudaStream_t stream) const {
  const bool is_pages = format_.scales == ScaleGranularity::kPage && place.slot == 0;
  if (!is_pages && format_.scales != ScaleGranularity::kToken) return {};
  KVATTN_RETURN_IF_ERROR(
      move_floats(at(place, false), bytes.key_scales, 1, cudaMemcpyHostToDevice, stream));
  return move_floats(at(place, true), bytes.value_scales, 1, cudaMemcpyHostToDevice, stream);
}

}  // namespace kvattn
