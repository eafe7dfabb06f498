#include "reference/stored_row.h"

#include <fmt/format.h>

#include <cstring>

namespace kv::reference {
namespace {

uint32_t code_at(std::span<const std::byte> bytes, size_t element, uint32_t element_bytes) {
  uint32_t code = 0;
  std::memcpy(&code, &bytes[element * element_bytes], element_bytes);
  return code;
}

}  // namespace

StoredRows::StoredRows(const Shape& shape) : shape_(shape), rotator_(shape.rope, {}) {}

bool StoredRows::changes(bool value) const {
  return dtype_bytes(shape_.kv_dtype) == 1 || (rotates() && !value);
}

void StoredRows::admissible(const SourceRow& row, std::vector<RowElement>& out) const {
  const bool turns = !row.value && rotates();
  RotatedRow turned{{row.source.begin(), row.source.end()},
                    std::vector<double>(row.source.size(), 0)};
  if (turns) turned = rotator_.rotate(row.position, row.source);
  const double carried = turns ? 2 * row.source_error : row.source_error;  // |cos| + |sin| <= 2
  out.clear();
  for (size_t i = 0; i < row.source.size(); ++i) {
    StoredElement element{
        .value = turned.value[i], .error = turned.error[i] + carried, .dtype = shape_.kv_dtype};
    if (shape_.kv_scale != KvScale::kNone) element.scale = row.scale;
    out.push_back({row.source[i], turned.value[i], row.scale, admissible_store(element)});
  }
}

bool StoredRows::admits_code(const RowElement& e, uint32_t code) const {
  const double got = decode(shape_.kv_dtype, code);
  return got >= e.range.low && got <= e.range.high;  // false for NaN
}

bool StoredRows::admits(std::span<const RowElement> elements,
                        std::span<const std::byte> got) const {
  const uint32_t bytes = dtype_bytes(shape_.kv_dtype);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!admits_code(elements[i], code_at(got, i, bytes))) return false;
  }
  return true;
}

void StoredRows::nearest(std::span<const RowElement> elements, std::span<const std::byte> got,
                         std::span<std::byte> expected) const {
  const uint32_t bytes = dtype_bytes(shape_.kv_dtype);
  for (size_t i = 0; i < elements.size(); ++i) {
    const RowElement& e = elements[i];
    uint32_t code = code_at(got, i, bytes);
    if (!admits_code(e, code)) {
      code = encode_saturating(shape_.kv_dtype, e.value / double{e.scale});
    }
    std::memcpy(&expected[i * bytes], &code, bytes);
  }
}

std::string StoredRows::text(const RowElement& e, bool value, int64_t position) const {
  std::string text = fmt::format("the source {}", e.source);
  if (rotates() && !value) text += fmt::format(", turned to position {}: {}", position, e.value);
  if (shape_.kv_scale != KvScale::kNone) text += fmt::format(", divided by its scale {}", e.scale);
  return text + fmt::format("; [{}, {}] is admissible", e.range.low, e.range.high);
}

RotatedRow StoredRows::rotated_query(int64_t position, std::span<const double> row) const {
  RotatedRow rotated = rotator_.rotate(position, row);
  add_rounding(shape_.query_dtype, rotated);
  return rotated;
}

}  // namespace kv::reference
