#include "harness/judge/conversion.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace kv {
namespace {

uint32_t code_at(std::span<const std::byte> bytes, size_t element, uint32_t element_bytes) {
  uint32_t code = 0;
  std::memcpy(&code, &bytes[element * element_bytes], element_bytes);
  return code;
}

bool admits_code(const StoredElement& e, DType type, uint32_t code) {
  const double got = decode(type, code);
  return got >= e.range.low && got <= e.range.high;  // false for NaN
}

}  // namespace

RowAddress address_of(const SlotOf& of, const ScalePlace& place) {
  return {.role = place.value ? TensorRole::kValue : TensorRole::kKey,
          .request = of.sequence.request,
          .slot = of.slot,
          .layer = place.layer,
          .head = place.head,
          .kv_length = of.kv_length};
}

std::vector<double> source_row(const Case& c, const SlotOf& of, const ScalePlace& place) {
  const RowAddress where = address_of(of, place);
  std::vector<std::byte> bytes(row_bytes(c.shape, where.role));
  fill_row(c, where, of.sequence.slots[of.slot], bytes);
  std::vector<double> row(row_elements(c.shape, where.role));
  decode_row(tensor_dtype(c.shape, where.role), bytes.data(), row.size(), row.data());
  return row;
}

Conversion::Conversion(const Case& c) : c_(c), rotator_(c.shape.rope, {}) {}

bool Conversion::changes(bool value) const {
  return dtype_bytes(c_.shape.kv_dtype) == 1 || (rotates() && !value);
}

void Conversion::admissible(const SlotOf& of, const PagePlace& place, uint32_t head,
                            std::vector<StoredElement>& out) const {
  const Slot& slot = of.sequence.slots[of.slot];
  const ScalePlace scaled{place.layer, place.value, head};
  const std::vector<double> source = source_row(c_, of, scaled);
  reference::RotatedRow row{source, std::vector<double>(source.size(), 0)};
  if (!place.value && rotates())
    row = rotator_.rotate(of.turned_to.value_or(slot.position), source);
  const float scale = slot_scale(c_, of.sequence, of.slot, scaled);
  out.clear();
  for (size_t i = 0; i < source.size(); ++i) {
    reference::StoredElement element{
        .value = row.value[i], .error = row.error[i], .dtype = c_.shape.kv_dtype};
    if (c_.shape.kv_scale != KvScale::kNone) element.scale = scale;
    out.push_back({source[i], row.value[i], scale, reference::admissible_store(element)});
  }
}

void Conversion::nearest(const SlotOf& of, const PagePlace& place, std::span<const std::byte> got,
                         std::vector<std::byte>& expected) const {
  const DType type = c_.shape.kv_dtype;
  const uint32_t bytes = dtype_bytes(type);
  expected.assign(got.begin(), got.end());
  std::vector<StoredElement> elements;
  for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
    admissible(of, place, head, elements);
    for (size_t i = 0; i < elements.size(); ++i) {
      const StoredElement& e = elements[i];
      const size_t at = head * elements.size() + i;
      if (admits_code(e, type, code_at(got, at, bytes))) continue;
      const uint32_t code = encode_saturating(type, e.value / double{e.scale});
      std::memcpy(&expected[at * bytes], &code, bytes);
    }
  }
}

bool Conversion::admits(const SlotOf& of, const PagePlace& place,
                        std::span<const std::byte> got) const {
  const DType type = c_.shape.kv_dtype;
  std::vector<StoredElement> elements;
  for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
    admissible(of, place, head, elements);
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t at = head * elements.size() + i;
      if (!admits_code(elements[i], type, code_at(got, at, dtype_bytes(type)))) return false;
    }
  }
  return true;
}

std::string Conversion::text(const StoredElement& e, const SlotOf& of,
                             const PagePlace& place) const {
  std::string text = fmt::format("the source {}", e.source);
  if (rotates() && !place.value)
    text +=
        fmt::format(", turned to position {}: {}", of.sequence.slots[of.slot].position, e.value);
  if (c_.shape.kv_scale != KvScale::kNone)
    text += fmt::format(", divided by its scale {}", e.scale);
  return text + fmt::format("; [{}, {}] is admissible", e.range.low, e.range.high);
}

std::vector<float> Conversion::scales(const Sequence& sequence, uint64_t count,
                                      const ScalePlace& place) const {
  std::vector<float> scales;
  if (c_.shape.kv_scale == KvScale::kNone) return scales;
  scales.reserve(count);
  for (uint64_t slot = 0; slot < count; ++slot)
    scales.push_back(slot_scale(c_, sequence, slot, place));
  return scales;
}

reference::RotatedRow Conversion::rotated_query(int64_t position,
                                                std::span<const double> row) const {
  reference::RotatedRow rotated = rotator_.rotate(position, row);
  reference::add_rounding(c_.shape.query_dtype, rotated);
  return rotated;
}

}  // namespace kv
