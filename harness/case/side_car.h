// Purpose: the tensors that a case has beside it (data.tensors_file): recorded Q, K and V.
// Contract: a safetensors file of these tensors:
//   request         I64 [n]      ids, ascending
//   kv_begin        I64 [n + 1]  request i's slots 0, 1, ... are rows [kv_begin[i], kv_begin[i+1])
//   query_begin     I64 [n + 1]  likewise its query rows, which stand at its last slots
//   layerL.key, layerL.value     [rows][KV heads][dim], F16, BF16 or F32, finite
//   layerL.query                 [query rows][query heads][dim]
//   layerL.key_scale, layerL.value_scale   F32 [1] or [KV heads], finite, not 0: of a cache of
//   codes
// A value replaces the design's at its place, rounded to the tensor's type; what the file does not
// hold is the design's, and what no row of the case asks for is not read, so that a case may be
// made smaller beside the same file. load_case() reads the file, once in a process: its bytes do
// not change while cases run. A case names it relative to itself; in memory the path is absolute.
// Example: KV_RETURN_IF_ERROR(attach_side_car(c, "corpus/regression"));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/case/data.h"
#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

class SideCar {
 public:
  static Result<SideCar> parse(TensorFile file, std::string_view name);
  SideCar(SideCar&&) = default;
  SideCar(const SideCar&) = delete;  // layers_ points into file_

  /// Replaces the elements of the row that the file holds; returns how many.
  uint32_t fill(const Shape& shape, const RowAddress& where, std::span<std::byte> out) const;
  /// Nothing where the file holds none for that head.
  std::optional<float> scale(uint32_t layer, bool value, uint32_t head) const;

 private:
  SideCar() = default;
  struct Layer {
    const StoredTensor* role[3] = {nullptr, nullptr, nullptr};  // by TensorRole
    const StoredTensor* scale[2] = {nullptr, nullptr};          // of K, of V
  };
  Result<void> read_requests(std::string_view name);
  Result<void> read_layers(std::string_view name);
  Result<void> read_layer(const StoredTensor& tensor, std::string_view name);
  Result<void> read_scale(const StoredTensor& tensor, std::string_view name) const;

  TensorFile file_;
  std::vector<uint64_t> request_, kv_begin_, query_begin_;
  std::vector<Layer> layers_;
};

/// Makes c.data.tensors_file, if there is any, absolute and reads it. `folder`: of the case's file.
Result<void> attach_side_car(Case& c, const std::string& folder);

/// Of a case that attach_side_car has seen in this process; otherwise nothing.
const SideCar* side_car_of(const Case& c);

/// The name under which a case in `folder` knows the file.
std::string relative_side_car(const Case& c, const std::string& folder);

}  // namespace kv
