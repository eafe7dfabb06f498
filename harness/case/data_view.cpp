#include "harness/case/data_view.h"

#include <algorithm>
#include <cmath>

namespace kv {
namespace {

constexpr int kExponentMax = 12;
/// What dimension 0 of a query holds when logits are shifted.
constexpr double kQueryOfShift = 32;

/// `value` in dimension 0; the row's exponent grows until it fits, the other elements lose bits.
void reserve_dimension(double value, FixedRow& row) {
  constexpr double kMost = 7.9;  // of 8 = 2^24 / kOne
  while (std::abs(value) > std::ldexp(kMost, row.exponent) && row.exponent < kExponentMax) {
    ++row.exponent;
    for (int32_t& fixed : row.elements()) fixed >>= 1;
  }
  const double most = std::ldexp(kMost, row.exponent);
  const double held = std::clamp(value, -most, most);
  row.fixed[0] = static_cast<int32_t>(std::ldexp(held, FixedRow::kFractionBits - row.exponent));
}

void shift_logits(const Case& c, TensorRole role, FixedRow& row) {
  const double scale = c.shape.scale;
  if (role == TensorRole::kValue || scale == 0) return;
  const bool is_query = role == TensorRole::kQuery;
  reserve_dimension(is_query ? kQueryOfShift : c.data.view.logit_shift / (kQueryOfShift * scale),
                    row);
}

}  // namespace

RowAddress source_of(const Case& c, const RowAddress& where) {
  const DataView& view = c.data.view;
  RowAddress source = where;
  const bool is_query = where.role == TensorRole::kQuery;
  const uint32_t group = is_query ? c.shape.query_heads / c.shape.kv_heads : 1;
  const uint32_t kv_head = (where.head / group + view.head_rotation) % c.shape.kv_heads;
  source.head = kv_head * group + where.head % group;
  if (!is_query) source.head /= view.kv_head_repeat;
  return source;
}

void present(const Case& c, TensorRole role, FixedRow& row) {
  const DataView& view = c.data.view;
  if (view.logit_shift != 0) shift_logits(c, role, row);
  if (role == TensorRole::kKey && view.key_exponent != 0)
    row.exponent = std::min(row.exponent + static_cast<int>(view.key_exponent), kExponentMax);
  if (role == TensorRole::kValue && view.value_rotation % row.size != 0) {
    const auto values = row.elements();
    std::rotate(values.begin(), values.begin() + view.value_rotation % row.size, values.end());
  }
}

}  // namespace kv
