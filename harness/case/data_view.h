// Purpose: Data::view: the design's values, presented otherwise.
// Contract: pure; whatever the view says, rows stay within FixedRow's contract (what would leave it
// saturates). PAD rows are not presented: they are nobody's values.
// Example:  design_row(c, source_of(c, where), slot, row);  present(c, where.role, row);
#pragma once

#include "harness/case/data.h"
#include "harness/case/fixed_row.h"

namespace kv {

/// The row of the design whose values the row at `where` takes.
RowAddress source_of(const Case& c, const RowAddress& where);

/// Query heads that share the values of one KV head of the design.
inline uint32_t design_group(const Case& c) {
  return c.shape.query_heads / c.shape.kv_heads * c.data.view.kv_head_repeat;
}

/// Rotates, scales and shifts the values of a row of the design.
void present(const Case& c, TensorRole role, FixedRow& row);

}  // namespace kv
