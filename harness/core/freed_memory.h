// Purpose: memory that a process frees stays with it: every case asks for the same blocks again.
// Contract: called once, at the start of a program that runs cases. At most 256 MiB stay.
#pragma once

#include <malloc.h>

namespace kv {

inline void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace kv
