#include "harness/relation/census.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "harness/case/data.h"

namespace kv {
namespace {

constexpr size_t kKeysMax = 512;

/// The sum of the codes of the visible keys: how often each column was named.
struct Counts {
  std::vector<double> column;
  size_t keys = 0;
};

Counts count_codes(const Case& c, const Timeline& timeline, const RowPlace& place) {
  const Sequence& sequence = timeline.sequence(place.row->request);
  const auto visible = visible_slots(c, sequence, *place.row, place.query);
  const uint32_t dims = c.shape.head_dim_v;
  Counts counts{.column = std::vector<double>(dims), .keys = 0};
  std::vector<std::byte> row(row_bytes(c.shape, TensorRole::kValue));
  std::vector<double> code(dims);
  for (uint64_t slot = 0; slot < visible.size(); ++slot) {
    if (visible[slot] == 0) continue;
    const RowAddress where{.role = TensorRole::kValue, .request = place.row->request, .slot = slot};
    fill_row(c, where, sequence.slots[slot], row);
    decode_row(tensor_dtype(c.shape, TensorRole::kValue), row.data(), dims, code.data());
    for (uint32_t d = 0; d < dims; ++d) counts.column[d] += code[d];
    ++counts.keys;
  }
  return counts;
}

std::optional<Failure> judge_row(const Seen& seen, const OpObservation& op, const RowPlace& place,
                                 const Counts& counts) {
  const Shape& shape = seen.c.shape;
  const uint32_t bytes = dtype_bytes(shape.output_dtype);
  for (uint32_t head = 0; head < shape.query_heads; ++head) {
    for (uint32_t d = 0; d < shape.head_dim_v; ++d) {
      const uint64_t element = (place.token * shape.query_heads + head) * shape.head_dim_v + d;
      uint32_t bits = 0;
      std::memcpy(&bits, &op.layers[0].output[element * bytes], bytes);
      const double got = decode(shape.output_dtype, bits) * static_cast<double>(counts.keys);
      if (std::abs(got - counts.column[d]) < 0.5) continue;  // false for NaN
      return Failure{
          .stage = Stage::kExact,
          .failure_class = "census",
          .message = fmt::format(
              "Operation {}, request {}, query slot {}, head {}: {} of {} visible keys have the "
              "position code {}; the output says {}.",
              op.op_index, place.row->request.value, place.slot(), head, counts.column[d],
              counts.keys, d, got)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> wrong_census(const Seen& seen) {
  const Shape& shape = seen.c.shape;
  // 8-bit codes do not hold the position codes exactly.
  if (shape.sinks || shape.alibi || dtype_bytes(shape.kv_dtype) == 1) return std::nullopt;
  if (seen.c.mask.encoding == MaskEncoding::kAdditive) return std::nullopt;
  Timeline timeline = Timeline::create(seen.c).value();
  std::optional<Failure> failure;
  for (uint32_t i = 0; i < seen.ops.size() && i < seen.c.ops.size(); ++i) {
    const PlannedStep step = timeline.apply(i);
    if (seen.ops[i].layers.empty()) continue;
    for_each_query(step, [&](const RowPlace& place) {
      if (is_pad_row(timeline, place)) return false;
      const Counts counts = count_codes(seen.c, timeline, place);
      if (counts.keys > 0 && counts.keys <= kKeysMax)
        failure = judge_row(seen, seen.ops[i], place, counts);
      return failure.has_value();
    });
    if (failure) return failure;
  }
  return failure;
}

}  // namespace kv
