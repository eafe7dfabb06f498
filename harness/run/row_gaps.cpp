#include "harness/run/row_gaps.h"

#include <cstring>

namespace kv {

RowGaps row_gaps(const Case& c, uint64_t row_bytes) {
  const bool has_gaps = c.pool.layout == CacheLayout::kInterleaved;
  return {.row_bytes = row_bytes, .gap_bytes = has_gaps ? row_bytes : 0};
}

int64_t token_stride(const Case& c, int64_t row_elements) {
  return c.pool.layout == CacheLayout::kInterleaved ? 2 * row_elements : row_elements;
}

std::vector<std::byte> with_gaps(std::vector<std::byte> rows, const RowGaps& gaps) {
  if (gaps.gap_bytes == 0 || rows.empty()) return rows;
  const uint64_t count = rows.size() / gaps.row_bytes;
  std::vector<std::byte> spread(gaps.span_bytes(count), kOutputCanary);
  for (uint64_t row = 0; row < count; ++row)
    std::memcpy(&spread[row * gaps.stride_bytes()], &rows[row * gaps.row_bytes], gaps.row_bytes);
  return spread;
}

std::vector<std::byte> without_gaps(std::vector<std::byte> stored, const RowGaps& gaps) {
  if (gaps.gap_bytes == 0) return stored;
  std::vector<std::byte> rows;
  for (uint64_t at = 0; at < stored.size(); at += gaps.stride_bytes()) {
    const auto row = std::span(stored).subspan(at, gaps.row_bytes);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

void close_gaps(const DeviceBuffer& buffer, const RowGaps& gaps) {
  if (gaps.gap_bytes == 0) return;
  for (uint64_t at = gaps.row_bytes; at < buffer.bytes(); at += gaps.stride_bytes())
    buffer.set_access(at, gaps.gap_bytes, KV_SIMT_ACCESS_NONE);
}

std::optional<Trespass> damaged_gap(const std::string& tensor, std::span<const std::byte> stored,
                                    const RowGaps& gaps) {
  if (gaps.gap_bytes == 0) return std::nullopt;
  const std::vector<std::byte> want(gaps.gap_bytes, kOutputCanary);
  for (uint64_t at = gaps.row_bytes; at < stored.size(); at += gaps.stride_bytes()) {
    auto change = first_change("memory between the rows of " + tensor, want,
                               stored.subspan(at, gaps.gap_bytes));
    if (change) return change;
  }
  return std::nullopt;
}

}  // namespace kv
