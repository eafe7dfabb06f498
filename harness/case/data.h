// Purpose: the bytes of Q, K and V of any token, without libm, in any order.
// Contract: a pure function of (case.data, shape, design, identity of the token, position, layer,
// head): so equal prefixes share bytes, diverged beams never do, and chunking changes nothing.
// Values are rounded once to the tensor's dtype. PAD tokens hold hostile finite K and V (K wins the
// softmax of half the rows if seen, V is huge); their query rows hold ordinary values.
// Example:
//   std::vector<std::byte> row(row_bytes(c.shape, TensorRole::kKey));
//   fill_row(c, {.role = TensorRole::kKey, .request = r, .slot = 3}, sequence.slots[3], row);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/case/case.h"
#include "harness/case/timeline.h"

namespace kv {

enum class TensorRole : uint8_t { kQuery, kKey, kValue };

/// Which row of which tensor.
struct RowAddress {
  TensorRole role = TensorRole::kQuery;
  RequestId request = {};
  uint64_t slot = 0;  // slot index in the request (for query rows: the slot it stands at; may be
                      // negative in principle when queries > slots: then query_index tells it)
  int64_t query_slot = 0;  // kQuery: kv_length - queries + i, may be negative
  uint32_t layer = 0;
  uint32_t head = 0;       // query head for kQuery, kv head otherwise
  uint32_t kv_length = 0;  // slots of the request at this step (designs that depend on it: needles)
};

/// Type of a tensor's elements: K and V are handed over in the query dtype when the cache is 8-bit.
DType tensor_dtype(const Shape& shape, TensorRole role);
/// Elements and bytes of one row.
uint32_t row_elements(const Shape& shape, TensorRole role);
inline uint32_t row_bytes(const Shape& shape, TensorRole role) {
  return row_elements(shape, role) * dtype_bytes(tensor_dtype(shape, role));
}

/// Bytes that a slot takes in the cache of one layer, all KV heads: V has none of its own where it
/// lies in K. Scales are not counted.
inline uint64_t slot_bytes(const Shape& shape) {
  const uint32_t dims = shape.head_dim_k + (shape.value_in_key ? 0 : shape.head_dim_v);
  return uint64_t{shape.kv_heads} * dims * dtype_bytes(shape.kv_dtype);
}

/// Writes one row (row_elements of tensor_dtype, little endian) to `out`, which is row_bytes long.
/// `slot` is what stands at the row's slot (slot_or_tokenless for query rows). Overrides apply.
void fill_row(const Case& c, const RowAddress& where, const Slot& slot, std::span<std::byte> out);

/// XXH3-64 over all input bytes: slopes and sinks where the case has them, then of all steps in
/// order: for each row the request, its lengths, block table, tree and mask bits, then for each
/// layer K and V of the appended slots and Q of the query rows; positions and scales of the
/// appended slots where K is rotated or K and V are scaled. The case must be one that
/// Timeline::create accepts.
uint64_t input_digest(const Case& c);
/// The same over what appends are given, in the same order: requests, lengths, K, V, positions and
/// scales. Designs and views may make K and V from the scale or the window of the shape.
uint64_t append_digest(const Case& c);

}  // namespace kv
