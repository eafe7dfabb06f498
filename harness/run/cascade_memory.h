// Purpose: device memory of one layer of a step that is attended in parts: what each part may see,
// the states that the parts return, and what merging them gives.
// Contract: as LayerMemory: outputs are the canary and undefined before each call, and states are
// read-only for the merge.
// Example: see step_run.cpp.
#pragma once

#include <vector>

#include "harness/run/step_memory.h"

namespace kv {

class CascadeMemory {
 public:
  struct Size {
    uint32_t layer = 0, tokens = 0, parts = 0;
  };
  static Result<CascadeMemory> create(const Case& c, const kv_conventions& conventions,
                                      const CudaRuntime& runtime, Size size);
  /// What part `part` may see, over the rows of the batch.
  Result<void> set_ranges(const Case& c, const PlannedStep& step, const Batch& batch, uint32_t part,
                          const CudaRuntime& runtime);

  Tensor key_begin(uint32_t rows) const;
  Tensor key_end(uint32_t rows) const;
  Tensor part_output(uint32_t part) const;
  Tensor part_lse(uint32_t part) const;
  Tensor outputs() const;  // of all parts
  Tensor lses() const;
  void close_states() const;
  const LayerMemory& merged() const { return merged_; }

  Result<CascadeResult> read(const std::vector<bool>& pad_queries) const;
  Result<void> add_trespasses(std::vector<Trespass>& found) const;

 private:
  CascadeMemory(const Shape& shape, const kv_conventions& conventions, Size size);
  uint64_t output_bytes() const;  // of one part
  uint64_t lse_bytes() const;

  const Shape* shape_;
  kv_conventions conventions_;
  Size size_;
  DeviceBuffer outputs_, lses_;
  InputBuffer begin_, end_;
  LayerMemory merged_;
};

}  // namespace kv
