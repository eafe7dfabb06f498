// Purpose: the device memory of one step (tables) and of one layer of it (inputs, outputs).
// Contract: inputs keep a copy of what was uploaded, are read-only for kernels, and are compared
// afterwards; outputs are the canary and undefined before each call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/batch.h"
#include "harness/run/device_buffer.h"
#include "harness/run/observation.h"
#include "harness/run/row_gaps.h"
#include "harness/run/tensor.h"

namespace kv {

template <class Number>
std::vector<std::byte> bytes_of(const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

/// Device memory that a plugin may only read.
class InputBuffer {
 public:
  InputBuffer() = default;
  static Result<InputBuffer> upload(const CudaRuntime& runtime, std::string name,
                                    std::vector<std::byte> bytes);
  /// `rows` are dense, and lie with gaps between them.
  static Result<InputBuffer> upload_rows(const CudaRuntime& runtime, std::string name,
                                         std::vector<std::byte> rows, const RowGaps& gaps);
  void* data() const { return buffer_.data(); }
  /// Compares with what was uploaded, and looks at the red zones.
  Result<void> add_trespasses(std::vector<Trespass>& found) const;

 private:
  std::string name_;
  std::vector<std::byte> host_;
  DeviceBuffer buffer_;
};

struct StepTables {
  InputBuffer table, append_offsets, first_slots, append_positions, query_offsets, kv_lengths,
      key_begin, key_end;
  InputBuffer mask, tree, tree_first_slots;  // no memory where the step has none
  InputBuffer query_positions;

  static Result<StepTables> upload(const Batch& batch, const CudaRuntime& runtime);
  Tensor block_table(const Batch& batch) const {
    return Tensor(table.data(), kDlInt32, {batch.rows, batch.table_columns});
  }
  Result<void> add_trespasses(std::vector<Trespass>& found) const;
};

/// LSE of a plugin's layout at `data`, and values in that layout as token major.
Tensor lse_tensor(const Shape& shape, const kv_conventions& conventions, void* data,
                  int64_t tokens);
std::vector<float> token_major(const Shape& shape, const kv_conventions& conventions,
                               std::span<const float> stored);

class LayerMemory {
 public:
  struct Size {
    uint32_t layer = 0;
    uint32_t query_tokens = 0;
    RowGaps output = {};  // the default: dense
  };
  LayerMemory(const Shape& shape, const kv_conventions& conventions, Size size);

  InputBuffer key, value, query;
  InputBuffer alibi_slopes, sinks;  // no memory where the case has none
  DeviceBuffer output, lse;

  Result<void> allocate_outputs(const CudaRuntime& runtime);
  /// As if nobody had ever written the outputs and the workspace.
  Result<void> spoil_outputs(const DeviceBuffer& workspace, Poison poison) const;
  Tensor lse_tensor() const;
  Tensor output_tensor() const;
  /// Output and LSE, the latter token major. On the CPU device undefined data in a row that is not
  /// PAD becomes a finding of the device, even where the value is right; an element that still is
  /// the canary was never written, which is for the judge to say.
  Result<LayerResult> read_result(const std::vector<bool>& pad_queries) const;
  Result<void> add_trespasses(std::vector<Trespass>& found) const;

 private:
  void report_undefined(std::span<const std::byte> stored_output, std::span<const float> stored_lse,
                        const std::vector<bool>& pad_queries) const;

  /// A GPU has no rights that would tell of it.
  Result<void> add_output_gap(std::vector<Trespass>& found) const;

  const Shape* shape_;
  kv_conventions conventions_;
  Size size_;
};

void add_repeat_differences(const Shape& shape, const LayerResult& first, const LayerResult& again,
                            uint32_t repeat, std::vector<RepeatDifference>& found);

}  // namespace kv
