// Purpose: a case's shape as the reference's heads have it.
// Contract: rotation and scales of stored K/V are not part of it; they come with the inputs.
// Example: block.shape = reference::head_shape(c.shape);
#pragma once

#include "harness/case/case.h"
#include "reference/inputs.h"

namespace kv::reference {

inline HeadShape head_shape(const Shape& s) {
  return {.dim_k = s.head_dim_k,
          .dim_v = s.head_dim_v,
          .query_dtype = s.query_dtype,
          .kv_dtype = s.kv_dtype,
          .output_dtype = s.output_dtype,
          .scale = s.scale,
          .softcap = s.softcap};
}

}  // namespace kv::reference
