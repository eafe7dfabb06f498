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
  WeightSums (*weights)(const WeightArgs&);
  void (*accumulate)(const AccumulateArgs&);
};

extern const BlockOps kPortableOps;
/// nullptr when this build or this processor has no AVX2.
const BlockOps* avx2_ops();
/// AVX2 where there is one, unless the environment says KVERIFY_CPU=portable.
const BlockOps& block_ops();

}  // namespace kv::reference
