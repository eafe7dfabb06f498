#include "harness/relation/census.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "harness/case/data.h"
#include "harness/case/mask_bits.h"

namespace kv {
namespace {

constexpr size_t kKeysMax = 512;

/// The sum of the codes of the visible keys: how often each column was named.
struct Counts {
  std::vector<double> column;
  size_t keys = 0;
};

/// `head` is one of those that the mask tells apart.
Counts count_codes(const Case& c, const Timeline& timeline, const RowPlace& place, uint32_t head) {
  const Sequence& sequence = timeline.sequence(place.row->request);
  const auto visible = visible_slots(c, sequence, *place.row, {place.query, head});
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

/// Query heads [first, end).
struct Heads {
  uint32_t first = 0, end = 0;
};

std::optional<Failure> judge_heads(const Seen& seen, const OpObservation& op, const RowPlace& place,
                                   const Counts& counts, Heads heads) {
  const Shape& shape = seen.c.shape;
  const uint32_t bytes = dtype_bytes(shape.output_dtype);
  for (uint32_t head = heads.first; head < heads.end; ++head) {
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

std::optional<Failure> judge_row(const Seen& seen, const Timeline& timeline,
                                 const OpObservation& op, const RowPlace& place) {
  const uint32_t apart = mask_heads(seen.c), heads = seen.c.shape.query_heads;
  for (uint32_t head = 0; head < apart; ++head) {
    const Counts counts = count_codes(seen.c, timeline, place, head);
    if (counts.keys == 0 || counts.keys > kKeysMax) continue;
    const Heads judged = apart == 1 ? Heads{0, heads} : Heads{head, head + 1};
    if (auto failure = judge_heads(seen, op, place, counts, judged)) return failure;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> wrong_census(const Seen& seen) {
  const Shape& shape = seen.c.shape;
  // 8-bit codes do not hold the position codes exactly.
  if (shape.sinks || shape.alibi || shape.value_in_key || dtype_bytes(shape.kv_dtype) == 1)
    return std::nullopt;
  if (seen.c.mask.encoding == MaskEncoding::kAdditive) return std::nullopt;
  Timeline timeline = Timeline::create(seen.c).value();
  std::optional<Failure> failure;
  for (uint32_t i = 0; i < seen.ops.size() && i < seen.c.ops.size(); ++i) {
    const PlannedStep step = timeline.apply(i);
    if (seen.ops[i].layers.empty()) continue;
    for_each_query(step, [&](const RowPlace& place) {
      if (is_pad_row(timeline, place)) return false;
      failure = judge_row(seen, timeline, seen.ops[i], place);
      return failure.has_value();
    });
    if (failure) return failure;
  }
  return failure;
}

}  // namespace kv
