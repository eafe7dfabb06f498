// Purpose: the double tier: all query rows that share one K/V head at once, O and LSE with a lower
// estimate of their bounds, in one pass over K and one over V.
// Contract: an element inside [R(O - (bound_low - own_error)), R(O + ...)] conforms under B0 and,
// where the profile declares an order, under B1 too, because bound_low exceeds neither: nothing
// more needs to be computed for it. Any other element is decided by decide.h; so is every row that
// may be dyadic, and every element under B2 that is not inside the interval of `rounded` as well.
// Same bits with and without AVX2.
// Example:
//   HeadEstimator estimator;                       // keeps its buffers between heads
//   const HeadEstimate& e = estimator.run(block, profile, {});
//   e.rows[0].output[3], e.rows[0].lse
#pragma once

#include <memory>
#include <vector>

#include "reference/fast/block_ops.h"
#include "reference/inputs.h"
#include "reference/profile.h"

namespace kv::reference {

/// What B2 allows, from below: P rounded as the kernel rounds it. An element inside both this
/// interval and the one of the row conforms under B2, unless the row may be dyadic.
struct RoundedEstimate {
  enum class Kind : uint8_t {
    kNotAsked,
    kNone,   // B2 says no more of this row than B0 and B1
    kKnown,  // the pointers below are valid
  };
  Kind kind = Kind::kNotAsked;
  const double* output = nullptr;     // [dim_v]
  const double* bound_low = nullptr;  // [dim_v]
  const double* own_error = nullptr;  // [dim_v]
};

struct RowEstimate {
  uint64_t keys = 0;     // visible
  bool finite = true;    // every input that the row sees; otherwise nothing below is meaningful
  bool vacuous = false;  // the bound may be infinite: decide.h has to say
  bool dyadic = false;   // P may be certified as powers of two: decide.h has to say
  double score_max = 0, lse = 0;
  double lse_bound_low = 0, lse_own_error = 0;
  const double* output = nullptr;     // [dim_v]
  const double* bound_low = nullptr;  // [dim_v]
  const double* own_error = nullptr;  // [dim_v]
  RoundedEstimate rounded;
  bool empty() const { return keys == 0; }
};

struct HeadEstimate {
  std::vector<RowEstimate> rows;
};

struct EstimateOptions {
  bool rounded = false;  // what B2 allows besides, where the profile declares how P is rounded
};

class HeadEstimator {
 public:
  explicit HeadEstimator(const BlockOps& ops = block_ops());
  ~HeadEstimator();
  /// Valid until the next call.
  const HeadEstimate& run(const HeadBlock& block, const Profile& profile,
                          const EstimateOptions& options = {});

 private:
  struct Buffers;
  const BlockOps& ops_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace kv::reference
