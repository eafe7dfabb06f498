#include "harness/case/kv_scales.h"

#include <cmath>

#include "harness/case/side_car.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr uint64_t kScaleUse = 0x7363616c65;  // "scale": this use of the data seed
constexpr uint32_t kSteps = 64;               // mantissas that a scale may have

/// Powers of two that scales of a format begin at, and how many follow.
struct Exponents {
  int lowest = 0;
  uint32_t count = 1;
};
Exponents exponents_of(DType type) {
  switch (type) {
    case DType::kE4m3:
      return {-8, 9};  // 448 * 2^-8 = 1.75
    case DType::kE5m2:
      return {-15, 16};  // 57344 * 2^-15 = 1.75
    case DType::kI8:
      return {-7, 5};  // 127 * 2^-7 = 1
    default:
      return {-2, 5};
  }
}

/// What a slot has in common with the others of its scale.
uint64_t owner_of(KvScale scale, uint64_t history, uint32_t head) {
  switch (scale) {
    case KvScale::kHead:
      return head;
    case KvScale::kToken:
    case KvScale::kPage:
      return history;
    default:
      return 0;
  }
}

/// Of a cache that was recorded; where tokens or pages have scales it holds none.
std::optional<float> recorded_scale(const Case& c, const ScalePlace& place) {
  const bool may_be = c.shape.kv_scale == KvScale::kTensor || c.shape.kv_scale == KvScale::kHead;
  if (!may_be || c.data.tensors_file.empty()) return std::nullopt;
  const SideCar* car = side_car_of(c);
  return car == nullptr ? std::nullopt : car->scale(place.layer, place.value, place.head);
}

}  // namespace

float scale_of(const Case& c, uint64_t history, const ScalePlace& place) {
  if (c.shape.kv_scale == KvScale::kNone) return 1;
  if (const auto recorded = recorded_scale(c, place)) return *recorded;
  const Philox random{c.data.seed ^ kScaleUse};
  const bool powers_of_two = random.word(~uint64_t{0}, 0) % 2 == 0;
  const uint64_t word = random.word(uint64_t{place.layer} << 1 | place.value,
                                    owner_of(c.shape.kv_scale, history, place.head));
  const Exponents range = exponents_of(c.shape.kv_dtype);
  const uint32_t step = powers_of_two ? 0 : static_cast<uint32_t>(word % kSteps);
  int exponent = range.lowest + static_cast<int>((word >> 32) % range.count);
  if (!place.value) exponent += static_cast<int>(c.data.view.key_exponent);
  return std::ldexp(1 + static_cast<float>(step) / kSteps, exponent);
}

float slot_scale(const Case& c, const Sequence& sequence, uint64_t slot, const ScalePlace& place) {
  if (c.shape.kv_scale == KvScale::kPage) slot = slot / c.pool.page_slots * c.pool.page_slots;
  return scale_of(c, sequence.slots[slot].history, place);
}

ScaleLayout scale_layout(const Case& c) {
  const uint64_t pages = c.pool.page_count, slots = c.pool.page_slots;
  switch (c.shape.kv_scale) {
    case KvScale::kTensor:
      return {.size = 1};
    case KvScale::kHead:
      return {.size = c.shape.kv_heads, .head_stride = 1};
    case KvScale::kToken:
      return {.size = pages * slots, .page_stride = slots, .slot_stride = 1};
    case KvScale::kPage:
      return {.size = pages, .page_stride = 1};
    case KvScale::kNone:
      break;
  }
  return {};
}

}  // namespace kv
