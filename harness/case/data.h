// Purpose: the bytes of Q, K and V of any token, without libm, in any order.
// Contract: a pure function of (case.data, shape, design, identity of the token, layer, head): so
// equal prefixes share bytes and diverged beams never do. Values are rounded once to the tensor's
// dtype. PAD tokens hold hostile finite values (K wins the softmax if seen, V is huge).
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
  RequestId request;
  uint64_t slot = 0;   // slot index in the request (for query rows: the slot it stands at; may be
                       // negative in principle when queries > slots: then query_index tells it)
  int64_t query_slot = 0;  // kQuery: kv_length - queries + i, may be negative
  uint32_t layer = 0;
  uint32_t head = 0;   // query head for kQuery, kv head otherwise
  uint32_t kv_length = 0;  // slots of the request at this step (designs that depend on it: needles)
};

/// Writes one row (head_dim elements of the tensor's dtype, little endian) to `out`.
void fill_row(const Case& c, const RowAddress& where, const Slot& slot, std::span<std::byte> out);

/// XXH3-64 over all input bytes of all steps in order (q, k, v, tables, lengths).
uint64_t input_digest(const Case& c);

}  // namespace kv
