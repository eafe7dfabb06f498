// Purpose: rotary position embedding of eight consecutive elements of a row (Su et al. 2021).
// Contract: the turn is found in double and reduced to a fraction of a full turn before it becomes
// fp32, so that positions up to 2^40 cost no accuracy; sine and cosine err by less than 2^-22. The
// rotation is fp32, one product and one fused multiply-add. Dimensions past `dims` stay as they
// are, bit for bit.
#pragma once

#include "impl/kernels/params.h"
#include "impl/kernels/vector.cuh"

namespace kvattn {

/// For the elements [first, first + 8) of a row at one position. Defined from the start: compilers
/// read it early, also where nothing turns.
struct Turns8 {
  float cosine[kVector] = {};
  float sine[kVector] = {};       // with the sign that the partner's share has
  int32_t partner[kVector] = {};  // dimension it is turned with; -1: it stays

  __device__ void find(const RopeParams& rope, int64_t position, int32_t first) {
    constexpr double kTurnsPerRadian = 0.15915494309189533577;
    const double log2_theta = log2(rope.theta);
    const int32_t half = rope.dims / 2;
#pragma unroll 1
    for (int i = 0; i < kVector; ++i) {
      const int32_t e = first + i;
      partner[i] = -1;
      if (e >= rope.dims) continue;
      const bool is_second = rope.is_interleaved ? e % 2 != 0 : e >= half;
      const int32_t pair = rope.is_interleaved ? e / 2 : e % half;
      partner[i] = rope.is_interleaved ? e ^ 1 : (is_second ? e - half : e + half);
      const double frequency = exp2(-2.0 * pair / rope.dims * log2_theta);
      const double turns = static_cast<double>(position) * (frequency * kTurnsPerRadian);
      const float half_turns = static_cast<float>(2 * (turns - rint(turns)));
      float s = 0;
      sincospif(half_turns, &s, &cosine[i]);
      sine[i] = is_second ? s : -s;
    }
  }

  /// `row` is the row that `x` is a part of.
  template <class T>
  __device__ void turn(const T* row, Vec8& x) const {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (partner[i] < 0) continue;
      const float other = static_cast<float>(row[partner[i]]);
      x.x[i] = __fmaf_rn(other, sine[i], __fmul_rn(x.x[i], cosine[i]));
    }
  }
};

}  // namespace kvattn
