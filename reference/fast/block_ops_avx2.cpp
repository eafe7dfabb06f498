// Compiled with -mavx2 -mf16c and without FMA: wider registers, the same operations.
#include <cpuid.h>

#include "reference/fast/block_ops_impl.h"

namespace kv::reference {

#ifdef __AVX2__
static const BlockOps kAvx2Ops{"avx2",  decode,        scores,    score_sizes,
                               weights, round_weights, accumulate};
/// __builtin_cpu_supports("f16c") is not known to clang 14. That the registers are kept, which F16C
/// needs as AVX2 does, the builtin has asked already.
static bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
const BlockOps* avx2_ops() {
  return __builtin_cpu_supports("avx2") && has_f16c() ? &kAvx2Ops : nullptr;
}
#else
const BlockOps* avx2_ops() { return nullptr; }
#endif

}  // namespace kv::reference
