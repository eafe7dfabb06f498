// Purpose: tensors of a step as views: rows of tokens with memory between them that is not theirs,
// as Q, K and V have it in one projected tensor.
// Contract: a gap is as long as a row and lies behind every row but the last, so that a buffer is
// what the tensor's shape and strides span. Gaps hold NaN, and on the CPU device no kernel may
// touch them.
// Example:  const RowGaps gaps = row_gaps(c, row_bytes);  buffer.upload(with_gaps(bytes, gaps));
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/device_buffer.h"

namespace kv {

struct RowGaps {
  uint64_t row_bytes = 0, gap_bytes = 0;  // gap 0: the rows are dense
  uint64_t stride_bytes() const { return row_bytes + gap_bytes; }
  uint64_t span_bytes(uint64_t rows) const {
    return rows == 0 ? 0 : rows * stride_bytes() - gap_bytes;
  }
};

/// Of a case's Q, K, V and O; rows of so many bytes.
RowGaps row_gaps(const Case& c, uint64_t row_bytes);
/// From token to token, of rows of so many elements.
int64_t token_stride(const Case& c, int64_t row_elements);

std::vector<std::byte> with_gaps(std::vector<std::byte> rows, const RowGaps& gaps);
std::vector<std::byte> without_gaps(std::vector<std::byte> stored, const RowGaps& gaps);
/// CPU device only, nothing on a GPU.
void close_gaps(const DeviceBuffer& buffer, const RowGaps& gaps);
/// The first byte of a gap that is not as with_gaps() and the canary have it.
std::optional<Trespass> damaged_gap(const std::string& tensor, std::span<const std::byte> stored,
                                    const RowGaps& gaps);

}  // namespace kv
