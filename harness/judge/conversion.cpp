#include "harness/judge/conversion.h"

namespace kv {

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

Conversion::Conversion(const Case& c) : c_(c), rows_(c.shape) {}

void Conversion::admissible(const SlotOf& of, const PagePlace& place, uint32_t head,
                            std::vector<StoredElement>& out) const {
  const ScalePlace scaled{place.layer, place.value, head};
  const std::vector<double> source = source_row(c_, of, scaled);
  rows_.admissible({.source = source,
                    .value = place.value,
                    .position = of.turned_to.value_or(of.sequence.slots[of.slot].position),
                    .scale = slot_scale(c_, of.sequence, of.slot, scaled)},
                   out);
}

void Conversion::nearest(const SlotOf& of, const PagePlace& place, std::span<const std::byte> got,
                         std::vector<std::byte>& expected) const {
  expected.resize(got.size());
  std::vector<StoredElement> elements;
  for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
    admissible(of, place, head, elements);
    const size_t bytes = elements.size() * dtype_bytes(c_.shape.kv_dtype);
    rows_.nearest(elements, got.subspan(head * bytes, bytes),
                  std::span(expected).subspan(head * bytes, bytes));
  }
}

bool Conversion::admits(const SlotOf& of, const PagePlace& place,
                        std::span<const std::byte> got) const {
  std::vector<StoredElement> elements;
  for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
    admissible(of, place, head, elements);
    const size_t bytes = elements.size() * dtype_bytes(c_.shape.kv_dtype);
    if (!rows_.admits(elements, got.subspan(head * bytes, bytes))) return false;
  }
  return true;
}

std::string Conversion::text(const StoredElement& e, const SlotOf& of,
                             const PagePlace& place) const {
  return rows_.text(e, place.value, of.sequence.slots[of.slot].position);
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

}  // namespace kv
