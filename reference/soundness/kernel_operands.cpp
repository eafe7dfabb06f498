#include "reference/soundness/kernel_operands.h"

#include <cmath>

#include "reference/bounds.h"

namespace kv::reference {
namespace {

// 8-bit operands meet 8-bit ones only.
void find_normals(const RowInputs& in, const KernelConfig& k, KernelOperands& of) {
  if (!k.stored_exponents) return;
  const DType query = in.shape.query_dtype, kv = in.shape.kv_dtype;
  const DType wide = dtype_bytes(kv) == 1 ? query : kv;
  of.query_normal = smallest_normal(query);
  of.key_normal = smallest_normal(dtype_bytes(query) == 1 ? kv : wide);
  of.weight_normal = smallest_normal(k.probability_dtype);
  of.value_normal = smallest_normal(dtype_bytes(k.probability_dtype) == 1 ? kv : wide);
}

// A rotated query is any operand within its error.
std::vector<double> read_query(const RowInputs& in, const KernelConfig& k, Draw& draw) {
  std::vector<double> query = in.query;
  const DType type = k.scores.fused_multiply_add ? DType::kF32 : in.shape.query_dtype;
  const auto operand = [&](double x) { return decode(type, encode_saturating(type, x)); };
  for (size_t c = 0; c < in.query_error.size(); ++c) {
    const double aside = in.query_error[c] * (2 * draw.uniform() - 1);
    const double wanted = operand(in.query[c] + aside);
    const bool near = std::fabs(wanted - in.query[c]) <= in.query_error[c];
    query[c] = near ? wanted : operand(in.query[c]);
  }
  return query;
}

std::vector<double> dequantised(DType type, std::span<const double> codes, size_t dim,
                                std::span<const double> scales) {
  std::vector<double> operands;
  operands.reserve(codes.size());
  for (size_t at = 0; at < codes.size(); ++at) {
    const double scaled = static_cast<double>(static_cast<float>(codes[at] * scales[at / dim]));
    operands.push_back(rounded_operand(type, scaled));
  }
  return operands;
}

}  // namespace

double rounded_operand(DType type, double x) {
  return type == DType::kF32 ? x : decode(type, encode_saturating(type, x));
}

// Scaled codes become operands of the mma's type, or fp32 ones. Where the query is 8-bit, so are
// the operands, and the scales are applied to the scores and to P; where it is not, they may be.
KernelOperands::KernelOperands(const RowInputs& in, const KernelConfig& k, Draw& draw)
    : query(read_query(in, k, draw)) {
  const bool folds = dtype_bytes(in.shape.query_dtype) == 1;
  scales_scores = in.scaled_kv && (folds || k.scales_scores);
  scales_weights = in.scaled_kv && (folds || k.scales_weights);
  const DType type = k.values.fused_multiply_add ? DType::kF32 : in.shape.query_dtype;
  keys = in.keys;
  values = in.values;
  if (in.scaled_kv && !scales_scores) {
    keys = dequantised_keys_ = dequantised(type, in.keys, in.shape.dim_k, in.key_scales);
  }
  if (in.scaled_kv && !scales_weights) {
    values = dequantised_values_ = dequantised(type, in.values, in.shape.dim_v, in.value_scales);
  }
  find_normals(in, k, *this);
}

}  // namespace kv::reference
