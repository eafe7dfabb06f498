// Purpose: named tensors as somebody's file holds them, whatever the format of the file.
// Contract: plain data; `first` and `bytes` of a tensor lie inside `data`, and `bytes` is the
// product of its shape times the size of an element. Little endian, row major, dense.
// Example: const StoredTensor* k = file.find("k"); use(file.bytes_of(*k));
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/formats.h"

namespace kv {

/// What a file may hold in one tensor, and in all: the tensors of one attention call of the largest
/// models at 100,000 tokens.
inline constexpr uint64_t kTensorFileBytesMax = uint64_t{1} << 30;
inline constexpr size_t kTensorsMax = 4096;
inline constexpr size_t kTensorRankMax = 8;

struct StoredTensor {
  std::string name;
  std::string type;  // safetensors' name: "F16", "BF16", "F32", "I32", "I64", ...
  std::vector<uint64_t> shape;
  uint64_t first = 0, bytes = 0;  // in TensorFile::data

  uint64_t elements() const;
  std::string shape_text() const;  // "[2, 16, 8, 64]"
};

struct TensorFile {
  std::string data;
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;

  const StoredTensor* find(std::string_view name) const;
  std::span<const std::byte> bytes_of(const StoredTensor& tensor) const {
    return std::as_bytes(std::span(data)).subspan(tensor.first, tensor.bytes);
  }
};

/// The floating-point format of the query, key and value tensors: F16, BF16 or F32.
std::optional<DType> float_type(const StoredTensor& tensor);
/// I32 or I64.
bool is_integer(const StoredTensor& tensor);
/// Element `index` of a tensor that is_integer().
int64_t integer_at(const TensorFile& file, const StoredTensor& tensor, uint64_t index);
/// Bytes of one element by safetensors' name of the type; 0 for a name that it does not have.
uint32_t stored_type_bytes(std::string_view type);
/// The product of the dimensions; nothing beyond kTensorFileBytesMax.
std::optional<uint64_t> element_count(std::span<const uint64_t> shape);

}  // namespace kv
