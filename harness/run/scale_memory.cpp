#include "harness/run/scale_memory.h"

#include <limits>

namespace kv {
namespace {

float poison_of(Poison poison) {
  return poison == Poison::kFiniteHuge ? 1e30f : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

Result<ScaleMemory> ScaleMemory::create(const Case& c, ScalePlace place,
                                        const CudaRuntime& runtime) {
  ScaleMemory scales;
  scales.place_ = place;
  scales.layout_ = scale_layout(c);
  scales.undefined_ = c.pool.poison == Poison::kUndefined;
  scales.host_.assign(scales.layout_.size, poison_of(c.pool.poison));
  const uint64_t bytes = scales.host_.size() * sizeof(float);
  KV_ASSIGN_OR_RETURN(scales.memory_, DeviceBuffer::allocate(runtime, bytes));
  if (bytes == 0) return scales;
  KV_RETURN_IF_ERROR(scales.memory_.upload(std::as_bytes(std::span(scales.host_))));
  scales.memory_.set_access(0, bytes, KV_SIMT_ACCESS_READ);
  if (scales.undefined_) scales.memory_.set_undefined(0, bytes);
  return scales;
}

Result<void> ScaleMemory::write(const Case& c, const Timeline& timeline, const PlannedStep& step) {
  if (layout_.size == 0) return {};
  for (const PlannedRow& row : step.rows) {
    const Sequence& sequence = timeline.sequence(row.request);
    for (uint64_t slot = row.kv_length - row.append_slots; slot < row.kv_length; ++slot) {
      const uint64_t page = sequence.pages[slot / c.pool.page_slots].value;
      const uint64_t first =
          page * layout_.page_stride + slot % c.pool.page_slots * layout_.slot_stride;
      const uint32_t heads = layout_.head_stride == 0 ? 1 : c.shape.kv_heads;
      for (uint32_t head = 0; head < heads; ++head) {
        const uint64_t index = first + head * layout_.head_stride;
        ScalePlace place = place_;
        place.head = head;
        host_[index] = slot_scale(c, sequence, slot, place);
        KV_RETURN_IF_ERROR(memory_.upload(std::as_bytes(std::span(host_).subspan(index, 1)),
                                          index * sizeof(float)));
      }
      // One scale for all slots: written with the first.
      if (layout_.page_stride == 0) return {};
    }
  }
  return {};
}

void ScaleMemory::retire(std::span<const PageId> pages) const {
  if (!undefined_ || layout_.page_stride == 0) return;
  for (const PageId page : pages)
    memory_.set_undefined(page.value * layout_.page_stride * sizeof(float),
                          layout_.page_stride * sizeof(float));
}

Result<void> ScaleMemory::add_trespasses(std::vector<Trespass>& found) const {
  if (layout_.size == 0) return {};
  std::vector<float> now(host_.size());
  KV_RETURN_IF_ERROR(memory_.download(std::as_writable_bytes(std::span(now))));
  auto change =
      first_change(name(), std::as_bytes(std::span(host_)), std::as_bytes(std::span(now)));
  if (change) found.push_back(std::move(*change));
  KV_ASSIGN_OR_RETURN(const auto damage, memory_.damaged_red_zone(name()));
  if (damage) found.push_back(*damage);
  return {};
}

}  // namespace kv
