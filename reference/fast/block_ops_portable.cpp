#include "harness/core/cpu.h"
#include "reference/fast/block_ops_impl.h"

namespace kv::reference {

const BlockOps kPortableOps{"portable", decode,        scores,    score_sizes,
                            weights,    round_weights, accumulate};

const BlockOps& block_ops() {
  const BlockOps* const fast = chosen_cpu() >= Cpu::kAvx2 ? avx2_ops() : nullptr;
  return fast == nullptr ? kPortableOps : *fast;
}

}  // namespace kv::reference
