#include "harness/core/check.h"
#include "reference/fast/block_ops.h"
#include "reference/precise/row.h"

namespace kv::reference {
namespace {

void append_decoded(DType type, const std::byte* bits, uint32_t dim, std::vector<double>& out) {
  out.resize(out.size() + dim);
  double* to = &out[out.size() - dim];
  if (dim % 4 != 0) return decode_row(type, bits, dim, to);
  double square = 0, largest = 0;
  block_ops().decode({.dtype = type,
                      .rows = &bits,
                      .count = 1,
                      .dim = dim,
                      .stride = dim,
                      .out = to,
                      .square = &square,
                      .largest = &largest});
}

double distance(int64_t a, int64_t b) { return static_cast<double>(a < b ? b - a : a - b); }

}  // namespace

RowInputs row_inputs(const HeadBlock& block, size_t row) {
  const QueryRow& from = block.rows[row];
  KV_CHECK(from.visible.size() == block.keys.size(), "visible set of another length than the keys");
  RowInputs in;
  in.shape = block.shape;
  in.scaled_kv = !block.key_scales.empty() || !block.value_scales.empty();
  if (from.rotated.empty()) {
    append_decoded(block.shape.query_dtype, from.query, block.shape.dim_k, in.query);
  } else {
    in.query.assign(from.rotated.begin(), from.rotated.end());
    in.query_error.assign(from.rotated_error.begin(), from.rotated_error.end());
  }
  for (size_t slot = 0; slot < block.keys.size(); ++slot) {
    if (!from.visible[slot]) continue;
    in.slots.push_back(slot);
    append_decoded(block.shape.kv_dtype, block.keys[slot], block.shape.dim_k, in.keys);
    append_decoded(block.shape.kv_dtype, block.values[slot], block.shape.dim_v, in.values);
    in.key_scales.push_back(block.key_scales.empty() ? 1.0 : block.key_scales[slot]);
    in.value_scales.push_back(block.value_scales.empty() ? 1.0 : block.value_scales[slot]);
    // A 24-bit slope times a distance below 2^29 is exact in double.
    in.bias.push_back(-double{from.alibi_slope} *
                      distance(from.anchor, static_cast<int64_t>(slot)));
  }
  in.span = in.slots.empty() ? 0 : in.slots.back() - in.slots.front() + 1;
  if (from.sink) in.sink = *from.sink;
  return in;
}

}  // namespace kv::reference
