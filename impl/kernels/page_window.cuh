// Purpose: the entries of the block table that a block needs, read once for all of its warps.
// Contract: every thread of the block calls move(), converged; page() may be called by any.
#pragma once

#include <cstdint>

namespace kvattn {

/// The part of a request's row of the block table that is in use, in shared memory.
template <int kEntries>
struct PageWindow {
  int32_t* entries;  // shared memory, [kEntries]
  int32_t first = 0, end = 0;

  /// Makes entries [from, to] available, `last` being the last that may be read; a window moves
  /// forward only. Every thread of a block of at least kEntries threads calls.
  __device__ void move(const int32_t* pages, int32_t from, int32_t to, int32_t last) {
    if (to < end) return;
    first = from;
    end = from + kEntries;
    const int32_t index = first + static_cast<int32_t>(threadIdx.x);
    __syncthreads();  // nobody reads the old entries any more
    if (threadIdx.x < kEntries && index <= last) entries[threadIdx.x] = pages[index];
    __syncthreads();  // the new ones are there
  }
  __device__ int64_t page(int32_t index) const { return entries[index - first]; }
};

}  // namespace kvattn
