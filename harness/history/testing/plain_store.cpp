#include "harness/history/testing/plain_store.h"

#include <algorithm>
#include <cstring>

namespace kv {

PlainStore::PlainStore(const Case& c, const Shape& as_stored)
    : case_(c), content_(c), rows_(as_stored) {}

void PlainStore::note_turned(const StoredToken& after, const Turn& turn) {
  turns_.emplace(std::pair(after.history, after.turned_back), turn);
}

PlainStore::Rows PlainStore::decoded(std::span<const std::byte> bytes, DType type, bool value,
                                     std::span<const float> scales) const {
  const size_t count = value ? case_.shape.head_dim_v : case_.shape.head_dim_k;
  Rows rows;
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    auto& row = rows.emplace_back(count);
    decode_row(type, bytes.data() + head * count * dtype_bytes(type), count, row.data());
    for (double& x : row) x *= scales.empty() ? 1.0 : double{scales[head]};
  }
  return rows;
}

void PlainStore::write_given(const StoredToken& token, ContentLayer layer, bool value,
                             std::span<std::byte> out) const {
  if (value) {
    content_.value(token, layer, out);
  } else {
    content_.key(token, layer, out);
  }
}

void PlainStore::write(const PlainCell& cell, ContentLayer layer, bool value,
                       std::span<std::byte> out, std::span<float> scales) const {
  if (!rows_.changes(value)) return write_given(cell.token, layer, value, out);
  if (!scales.empty()) content_.scales(cell.scale_history, layer, value, scales);
  Rows rows;
  int64_t position = cell.token.position + cell.turned_too_far;
  if (!value && cell.token.turned_back != 0) {
    const Turn& turn = turns_.at({cell.token.history, cell.token.turned_back});
    PlainCell before = cell;
    before.token.turned_back -= turn.gap;
    std::vector<std::byte> bytes(out.size());
    write(before, layer, value, bytes, scales);
    rows = decoded(bytes, case_.shape.kv_dtype, value, scales);
    position = -turn.turned;
  } else {
    std::vector<std::byte> given(value ? content_.value_bytes() : content_.key_bytes());
    write_given(cell.token, layer, value, given);
    rows = decoded(given, tensor_dtype(case_.shape, TensorRole::kKey), value, {});
  }
  const size_t bytes = out.size() / rows.size();
  std::vector<reference::RowElement> elements;
  for (size_t head = 0; head < rows.size(); ++head) {
    rows_.admissible({.source = rows[head],
                      .value = value,
                      .position = position,
                      .scale = scales.empty() ? 1.0f : scales[head]},
                     elements);
    const auto here = out.subspan(head * bytes, bytes);
    std::ranges::fill(here, std::byte{0x7F});  // NaN, or seldom what is meant
    rows_.nearest(elements, here, here);
    const uint32_t code = encode_saturating(case_.shape.kv_dtype, elements[0].range.high);
    if (cell.is_rounded_up) std::memcpy(here.data(), &code, dtype_bytes(case_.shape.kv_dtype));
  }
}

}  // namespace kv
