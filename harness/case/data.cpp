#include "harness/case/data.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "harness/case/data_view.h"
#include "harness/case/designs.h"
#include "harness/case/history.h"
#include "harness/case/limits.h"
#include "harness/case/side_car.h"
#include "harness/core/check.h"

namespace kv {
namespace {

using RowPlace = std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, uint32_t>;

RowPlace place_of(const Data::Override& o) {
  return {o.tensor, o.request.value, o.slot, o.layer, o.head};
}

// Overrides are sorted (check_case), so those of one row are adjacent.
void apply_overrides(const Case& c, const RowAddress& where, std::span<std::byte> out) {
  const bool is_query = where.role == TensorRole::kQuery;
  if (is_query && where.query_slot < 0) return;
  const RowPlace row{static_cast<uint32_t>(where.role), where.request.value,
                     is_query ? static_cast<uint64_t>(where.query_slot) : where.slot, where.layer,
                     where.head};
  auto override = std::lower_bound(
      c.data.overrides.begin(), c.data.overrides.end(), row,
      [](const Data::Override& o, const RowPlace& place) { return place_of(o) < place; });
  const DType type = tensor_dtype(c.shape, where.role);
  for (; override != c.data.overrides.end() && place_of(*override) == row; ++override) {
    const uint32_t bits = encode(type, override->value);
    const uint32_t bytes = dtype_bytes(type);
    KV_CHECK((size_t{override->dim} + 1) * bytes <= out.size(), "dimension of an override");
    std::memcpy(out.data() + size_t{override->dim} * bytes, &bits, bytes);
  }
}

void apply_side_car(const Case& c, const RowAddress& where, std::span<std::byte> out) {
  const SideCar* car = side_car_of(c);
  KV_CHECK(car != nullptr, "a case with tensors beside it comes from load_case");
  car->fill(c.shape, where, out);
}

/// V that lies in K: the first dimensions of the same token's.
void fill_from_key(const Case& c, RowAddress where, const Slot& slot, std::span<std::byte> out) {
  std::array<std::byte, limits::kHeadDimMax * sizeof(float)> key;
  where.role = TensorRole::kKey;
  fill_row(c, where, slot, std::span(key).first(row_bytes(c.shape, TensorRole::kKey)));
  std::memcpy(out.data(), key.data(), out.size());
}

}  // namespace

DType tensor_dtype(const Shape& shape, TensorRole role) {
  const bool quantised = dtype_bytes(shape.kv_dtype) == 1;
  return role == TensorRole::kQuery || quantised ? shape.query_dtype : shape.kv_dtype;
}

uint32_t row_elements(const Shape& shape, TensorRole role) {
  return role == TensorRole::kValue ? shape.head_dim_v : shape.head_dim_k;
}

void fill_row(const Case& c, const RowAddress& where, const Slot& slot, std::span<std::byte> out) {
  if (where.role == TensorRole::kValue && c.shape.value_in_key) {
    return fill_from_key(c, where, slot, out);
  }
  FixedRow row;
  row.size = row_elements(c.shape, where.role);
  // The tail of the last group is rounded with the rest, and dropped.
  std::fill_n(row.fixed.begin() + row.size / FixedRow::kGroup * FixedRow::kGroup,
              row.size % FixedRow::kGroup == 0 ? 0 : FixedRow::kGroup, 0);
  Slot identity = slot;
  if (identity.history == 0) {
    const auto at =
        where.role == TensorRole::kQuery ? where.query_slot : static_cast<int64_t>(where.slot);
    identity.history = tokenless_history(c.data.seed, where.request, at);
  }
  if (slot.pad && where.role != TensorRole::kQuery) {
    canary_row(where, identity, row);
  } else {
    design_row(c, source_of(c, where), identity, row);
    present(c, where.role, row);
  }
  encode_row(row, tensor_dtype(c.shape, where.role), out);
  if (!c.data.tensors_file.empty()) apply_side_car(c, where, out);
  if (!c.data.overrides.empty()) apply_overrides(c, where, out);
}

}  // namespace kv
