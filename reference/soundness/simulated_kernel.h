// Purpose: an attention kernel that is correct by construction, with every freedom that a profile
// leaves: the bounds must accept whatever it returns.
// Contract: one query row. All approximate operations err inside their documented bounds; what
// errs how is the configuration's choice. `declaration` says of the kernel what its plugin would.
#pragma once

#include "reference/precise/row.h"
#include "reference/profile.h"
#include "reference/soundness/draw.h"

namespace kv::reference {

enum class Exp2Error : uint8_t { kNone, kRandom, kHigh, kLow, kByParity };
enum class VisitOrder : uint8_t { kAscending, kDescending, kShuffled };

struct KernelConfig {
  uint32_t tile_slots = 64;
  VisitOrder order = VisitOrder::kAscending;
  Accumulation scores = kHopper16, values = kHopper16;
  std::string architecture = "hopper";
  bool row_sum_of_rounded = false;
  Exp2Error exp2_error = Exp2Error::kNone;
  uint32_t splits = 1;
  bool sequential_merge = false;
  DType probability_dtype = DType::kF16;  // kF32: not rounded
  bool lazy_rescale = false;              // the max may lag by 8 in base 2
  bool stored_exponents = false;          // subnormal operands are aligned as smallest normal ones
  bool fused_scaling = true;              // exponent by one fma
  bool unfused = false;                   // whole softmax, P normalised before it is rounded
  uint32_t tanh_error = 0;                // 0 none, 1 random, 2 at the bound by parity
  uint32_t division_error = 0;            // ulps of the reciprocal, 0 or 1
  bool scales_scores = false;             // K's scale multiplies scores, its operands are codes
  bool scales_weights = false;            // V's scale multiplies an unrounded P
};

struct KernelResult {
  std::vector<double> output;  // rounded to the output type
  float lse = 0;
};

KernelResult run_kernel(const RowInputs& inputs, const KernelConfig& config, Draw& draw);
Declaration declaration_of(const KernelConfig& config);

}  // namespace kv::reference
