// Purpose: rotation and quantisation of rows of K and V in host memory.
// Contract: as cache_format.h says. Angles, sines and products are doubles: within what a kernel's
// fp32 would give, not its bits.
// Example:  store_row(format, {.given = key, .position = 17, .turns = true, .scales = s}, to);
#pragma once

#include <cstddef>
#include <cstdint>

#include "kvattn/cache_format.h"

namespace kvattn {

/// One token's K or V of all heads.
struct HostRow {
  const std::byte* given = nullptr;  // [kv_heads, head_dim]
  int64_t position = 0;
  bool turns = false;             // K of a model with RoPE
  const float* scales = nullptr;  // [kv_heads], or nullptr: 1
};
void store_row(const CacheFormat& format, const HostRow& row, std::byte* to);

}  // namespace kvattn
