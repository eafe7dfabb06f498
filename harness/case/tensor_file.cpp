#include "harness/case/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/check.h"

namespace kv {
namespace {

constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8},
};

template <class T>
T load(std::span<const std::byte> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

uint64_t StoredTensor::elements() const { return bytes / stored_type_bytes(type); }

std::string StoredTensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

const StoredTensor* TensorFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::optional<DType> float_type(const StoredTensor& tensor) {
  if (tensor.type == "F16") return DType::kF16;
  if (tensor.type == "BF16") return DType::kBf16;
  if (tensor.type == "F32") return DType::kF32;
  return std::nullopt;
}

bool is_integer(const StoredTensor& tensor) { return tensor.type == "I32" || tensor.type == "I64"; }

int64_t integer_at(const TensorFile& file, const StoredTensor& tensor, uint64_t index) {
  KV_CHECK(index < tensor.elements(), "index of an integer");
  const auto bytes = file.bytes_of(tensor);
  KV_CHECK(is_integer(tensor), "type of an integer");
  return tensor.type == "I64" ? load<int64_t>(bytes, index) : load<int32_t>(bytes, index);
}

uint32_t stored_type_bytes(std::string_view type) {
  for (const auto& [name, bytes] : kTypes)
    if (name == type) return bytes;
  return 0;
}

std::optional<uint64_t> element_count(std::span<const uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) {
    if (size == 0) return 0;
    if (size > kTensorFileBytesMax / count) return std::nullopt;
    count *= size;
  }
  return count;
}

}  // namespace kv
