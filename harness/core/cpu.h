// Purpose: which vector instructions this process uses, asked in one place.
// Contract: the best set that the processor has, but none above the one that the environment names
// (KVERIFY_CPU=portable|avx2). Published bytes do not depend on it.
#pragma once

#include <cstdint>

#include "harness/core/result.h"

namespace kv {

/// Each has what those before it have: AVX2 with FMA and F16C; AVX-512 F, BW, VL and DQ.
enum class Cpu : uint8_t { kPortable, kAvx2, kAvx512 };

/// What the processor has.
Cpu best_cpu();
/// What is used. A value of KVERIFY_CPU that names none asks for nothing; see check_cpu_choice().
Cpu chosen_cpu();
/// Bad input where KVERIFY_CPU is set and names none.
Result<void> check_cpu_choice();

}  // namespace kv
