// Purpose: the parameter struct of flash.cu, shared with those who launch it.
// Contract: plain data; strides in elements. Dynamic shared memory: flash_shared_bytes(warps).
#pragma once

#include <cstdint>

struct __half;

struct FlashParameters {
  const __half *q, *k, *v;
  __half* o;
  float* lse;
  int queries, keys;
  int64_t query_row, query_head, key_row, key_head;
  float scale;
};

constexpr uint32_t flash_shared_bytes(uint32_t warps) {
  return (warps * 16 * 64 + 2 * 2 * 64 * 64) * 2;
}
