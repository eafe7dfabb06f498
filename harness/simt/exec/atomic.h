// Purpose: what an atomic operation leaves in memory. PTX ISA 9.0 section 9.7.13.6.
// Contract: pure; values in the low bits. An f32 addition flushes subnormals on global memory and
// keeps them on shared memory; halves keep them and round once.
#pragma once

#include <cstdint>

#include "harness/simt/exec/warp.h"

namespace kv::simt {

enum class AtomicKind : uint8_t {
  kAdd,
  kMin,
  kMax,
  kIncrement,
  kDecrement,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareSwap,
};
enum class AtomicType : uint8_t {
  kU32,
  kS32,
  kU64,
  kS64,
  kF32,
  kF64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kB16
};

uint64_t atomic_result(AtomicKind kind, AtomicType type, uint64_t before, uint64_t a, uint64_t b,
                       bool global);

/// Ins::mode holds kind and type; how the address is made is in Ins::target (AddressMode).
uint64_t atomic_address(Warp& w, const Ins* i, uint32_t lane);

}  // namespace kv::simt
