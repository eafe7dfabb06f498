// Compiled with -mavx2 -mf16c and without FMA: wider registers, the same operations.
#include "harness/core/cpu.h"
#include "reference/fast/block_ops_impl.h"

namespace kv::reference {

#ifdef __AVX2__
static const BlockOps kAvx2Ops{"avx2",  decode,        scores,    score_sizes,
                               weights, round_weights, accumulate};
const BlockOps* avx2_ops() { return best_cpu() >= Cpu::kAvx2 ? &kAvx2Ops : nullptr; }
#else
const BlockOps* avx2_ops() { return nullptr; }
#endif

}  // namespace kv::reference
