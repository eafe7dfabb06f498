// Purpose: one-line faults of attention kernels, planted in the inputs that a kernel sees.
// Contract: returns what the faulty kernel computes from; the kernel itself stays correct, so its
// output is exactly right for the wrong question. kNone and kSwapKeysAndValues change nothing that
// attention can tell. Source: docs/numerics.md §5.2.
#pragma once

#include <span>
#include <string_view>

#include "reference/precise/row.h"
#include "reference/soundness/draw.h"

namespace kv::reference {

enum class Fault : uint8_t {
  kNone,
  kDropKey,
  kDuplicateKey,
  kExtraKey,    // one more token than the mask allows
  kDropLast,    // causal limit one too early
  kDropFirst,   // window one too short
  kSwapValues,  // V rows of two keys exchanged
  kSwapKeysAndValues,
  kScale,       // scale * (1 + 1e-3)
  kStaleValue,  // one element of V is another's
  kStaleKey,    // one element of K is another's
  kStalePage,   // V of sixteen keys is others'
};
inline constexpr Fault kFaults[] = {
    Fault::kNone,     Fault::kDropKey,    Fault::kDuplicateKey, Fault::kExtraKey,
    Fault::kDropLast, Fault::kDropFirst,  Fault::kSwapValues,   Fault::kSwapKeysAndValues,
    Fault::kScale,    Fault::kStaleValue, Fault::kStaleKey,     Fault::kStalePage};
std::string_view fault_name(Fault fault);

/// `inputs` must hold at least two keys.
RowInputs plant(Fault fault, const RowInputs& inputs, Draw& draw);

}  // namespace kv::reference
