// Purpose: the inner loops of the double tier, in two builds of one source (portable, AVX2).
// Contract: both builds give the same bits: every sum has a fixed order (four lanes, element i in
// lane i mod 4, lanes added as `sum` does), nothing is contracted, nothing depends on blocking.
// Raw pointers only; strides count doubles and are multiples of 4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/core/formats.h"

namespace kv::reference {

/// Rows of stored elements to rows of doubles, padded with zeros to `stride`.
struct DecodeArgs {
  DType dtype = DType::kF16;
  const std::byte* const* rows = nullptr;  // [count]; nullptr: a row of zeros
  uint32_t count = 0, dim = 0, stride = 0;
  double* out = nullptr;      // [count][stride]
  double* square = nullptr;   // [count] sum of squares
  double* largest = nullptr;  // [count] largest magnitude; infinite when the row is not finite
};

/// out[r][i] = sum over c of query[r][c] * key[i][c].
struct ScoreArgs {
  const double* query = nullptr;  // [rows][stride]
  const double* key = nullptr;    // [keys][stride]
  uint32_t rows = 0, keys = 0, stride = 0;
  double* out = nullptr;
  size_t out_stride = 0;
};

/// Softmax weights of one row, in place of its raw scores.
struct WeightArgs {
  double* scores = nullptr;           // [keys] in: q.k; out: w = exp(x - x_max), 0 if hidden
  double* rounding = nullptr;         // [keys] out: max(w*relative, absolute) + w*common
  double* logits = nullptr;           // [keys] out, or nullptr: x, -infinity if hidden
  const uint8_t* visible = nullptr;   // [keys]
  const double* key_scale = nullptr;  // [keys] or nullptr
  const double* bias = nullptr;       // [keys] or nullptr
  size_t keys = 0;                    // a multiple of 4
  double scale = 1, softcap = 0;
  double extra_score = 0;  // of a sink; -infinity without one
  double relative = 0, absolute = 0, common = 0;
};
struct WeightSums {
  double score_max = 0;  // sink included
  double score_abs = 0;  // largest |x| among visible keys
  double weights = 0;    // sum of w, sink excluded
  double rounding = 0;   // sum of max(w*relative, absolute)
};

/// The format that P is rounded to: stored bits of the significand, the smallest normal exponent,
/// the largest number. Not for integers.
struct RoundingGrid {
  int mantissa = 10, exponent_min = -14;
  double largest = 65504;
};

/// P of one row as a kernel rounds it that takes each tile relative to the running maximum.
struct RoundArgs {
  const double* logits = nullptr;    // [keys] x, -infinity if hidden
  const double* sizes = nullptr;     // [keys] sum of |q||k|
  const double* bias = nullptr;      // [keys] or nullptr
  const double* maximums = nullptr;  // [keys] running maximum of the key's tile, at least x
  size_t keys = 0;                   // a multiple of 4
  /// error = fixed + scores*size + tanh*|x - bias| + bias_error*|bias|
  ///         + argument*(|x| + |maximum|) + distance*(maximum - x), times 1 - 2^-20;
  /// it errs the weight by error*(1 + error), or by all of it from error = 1/2.
  double fixed = 0, scores = 0, tanh = 0, bias_error = 0, argument = 0, distance = 0;
  RoundingGrid grid;
  double scale = 1;  // of P when it is rounded, a power of two
  /// Middle and half the width of [R(w (1 - E)), R(w (1 + E))], and E; zero where hidden.
  double *centre = nullptr, *radius = nullptr, *error = nullptr;  // [keys]
};

/// output[r][j] += sum over i of weight[r][i]*value[i][j]; absolute likewise with rounding,
/// |value|.
struct AccumulateArgs {
  const double *weight = nullptr, *rounding = nullptr;  // [rows], weight_stride apart
  size_t weight_stride = 0;
  const double* value = nullptr;  // [keys][stride], stride a multiple of 8
  uint32_t rows = 0, keys = 0, stride = 0;
  double *output = nullptr, *absolute = nullptr;  // [rows][stride]
};

struct BlockOps {
  const char* name;
  void (*decode)(const DecodeArgs&);
  void (*scores)(const ScoreArgs&);
  void (*score_sizes)(const ScoreArgs&);  // of magnitudes: sum of |query||key|
  WeightSums (*weights)(const WeightArgs&);
  void (*round_weights)(const RoundArgs&);
  void (*accumulate)(const AccumulateArgs&);
};

extern const BlockOps kPortableOps;
/// nullptr when this build or this processor has no AVX2.
const BlockOps* avx2_ops();
/// AVX2 where there is one and chosen_cpu() allows it.
const BlockOps& block_ops();

}  // namespace kv::reference
