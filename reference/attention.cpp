#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/core/check.h"
#include "reference/attention_buffers.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kTileKeys = 64;  // K or V rows decoded at once: 64 KiB at 128 dimensions

uint32_t round_up(size_t n, uint32_t multiple) {
  return static_cast<uint32_t>((n + multiple - 1) / multiple * multiple);
}

}  // namespace

// Which slots any row sees, and what each row sees of them.
void HeadEstimator::Buffers::gather(const HeadBlock& block) {
  const size_t slot_count = block.keys.size();
  std::vector<uint8_t> seen(slot_count, 0);
  for (const QueryRow& row : block.rows) {
    KV_CHECK(row.visible.size() == slot_count, "visible set of another length than the keys");
    for (size_t s = 0; s < slot_count; ++s) seen[s] |= row.visible[s];
  }
  slots.clear();
  for (size_t s = 0; s < slot_count; ++s) {
    if (seen[s]) slots.push_back(static_cast<uint32_t>(s));
  }
  keys = round_up(slots.size(), 4);
  key_stride = round_up(block.shape.dim_k, 4);
  value_stride = round_up(block.shape.dim_v, 8);
  visible.assign(block.rows.size() * keys, 0);
  span.assign(block.rows.size(), 0);
  result.rows.assign(block.rows.size(), {});
  for (size_t r = 0; r < block.rows.size(); ++r) find_extent(block.rows[r], r);
}

void HeadEstimator::Buffers::find_extent(const QueryRow& row, size_t index) {
  uint8_t* out = &visible[index * keys];
  uint64_t count = 0, first = 0, last = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!row.visible[slots[i]]) continue;
    out[i] = 1;
    if (count++ == 0) first = slots[i];
    last = slots[i];
  }
  span[index] = count == 0 ? 0 : last - first + 1;
  result.rows[index].keys = count;
}

void HeadEstimator::Buffers::decode_queries(const HeadBlock& block) {
  const uint32_t rows = static_cast<uint32_t>(block.rows.size());
  query.resize(size_t{rows} * key_stride);
  square.resize(rows);
  largest.resize(rows);
  pointers.resize(rows);
  for (uint32_t r = 0; r < rows; ++r) {
    pointers[r] = block.rows[r].rotated.empty() ? block.rows[r].query : nullptr;
  }
  ops.decode({.dtype = block.shape.query_dtype,
              .rows = pointers.data(),
              .count = rows,
              .dim = block.shape.dim_k,
              .stride = key_stride,
              .out = query.data(),
              .square = square.data(),
              .largest = largest.data()});
  query_norm.resize(rows);
  for (uint32_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < block.rows[r].rotated.size(); ++c) {
      const double x = query[size_t{r} * key_stride + c] = block.rows[r].rotated[c];
      square[r] += x * x;
    }
    query_norm[r] = std::sqrt(square[r]) * (1 + 0x1p-40);
    if (largest[r] < kInfinity) continue;
    result.rows[r].finite = false;
    std::fill_n(&query[size_t{r} * key_stride], key_stride, 0.0);
  }
}

// Decodes the rows of slots[first, first + kTileKeys). Rows that are not finite become zero, and
// are remembered: a row that sees one is not judged by value.
const double* HeadEstimator::Buffers::decode_tile(std::span<const std::byte* const> source,
                                                  const HeadBlock& block, uint32_t dim,
                                                  uint32_t stride, uint32_t first) {
  const uint32_t count = std::min<uint32_t>(kTileKeys, static_cast<uint32_t>(slots.size()) - first);
  tile.resize(size_t{kTileKeys} * stride);
  square.resize(kTileKeys);
  largest.resize(kTileKeys);
  pointers.resize(kTileKeys);
  for (uint32_t i = 0; i < count; ++i) pointers[i] = source[slots[first + i]];
  ops.decode({.dtype = block.shape.kv_dtype,
              .rows = pointers.data(),
              .count = count,
              .dim = dim,
              .stride = stride,
              .out = tile.data(),
              .square = square.data(),
              .largest = largest.data()});
  for (uint32_t i = 0; i < count; ++i) {
    if (largest[i] < kInfinity) continue;
    special[first + i] = 1;
    square[i] = largest[i] = 0;
    std::fill_n(&tile[size_t{i} * stride], stride, 0.0);
  }
  return tile.data();
}

void HeadEstimator::Buffers::score(const HeadBlock& block) {
  const uint32_t rows = static_cast<uint32_t>(block.rows.size());
  key_max = 0;
  weight.assign(size_t{rows} * keys, 0);
  if (rounds) score_size.assign(size_t{rows} * keys, 0);
  special.assign(keys, 0);
  key_norm.assign(keys, 0);
  for (uint32_t first = 0; first < slots.size(); first += kTileKeys) {
    const double* k = decode_tile(block.keys, block, block.shape.dim_k, key_stride, first);
    const uint32_t count =
        std::min<uint32_t>(kTileKeys, static_cast<uint32_t>(slots.size()) - first);
    for (uint32_t i = 0; i < count; ++i) {
      key_norm[first + i] = std::sqrt(square[i]) * (1 + 0x1p-40);
      const double factor =
          block.key_scales.empty() ? 1 : std::fabs(double{block.key_scales[slots[first + i]]});
      key_max = std::max(key_max, largest[i] * factor);
    }
    ScoreArgs args{.query = query.data(),
                   .key = k,
                   .rows = rows,
                   .keys = count,
                   .stride = key_stride,
                   .out = weight.data() + first,
                   .out_stride = keys};
    ops.scores(args);
    if (!rounds) continue;
    args.out = score_size.data() + first;
    ops.score_sizes(args);
  }
}

Coefficients HeadEstimator::Buffers::row_coefficients(const HeadBlock& block,
                                                      const Profile& profile, size_t row) const {
  return coefficients(profile,
                      {.dim_k = block.shape.dim_k,
                       .keys = result.rows[row].keys,
                       .span = span[row],
                       .softcap = block.shape.softcap > 0,
                       .scaled_kv = !block.key_scales.empty() || !block.value_scales.empty(),
                       .query_dtype = block.shape.query_dtype,
                       .kv_dtype = block.shape.kv_dtype});
}

// ALiBi distances of the seen slots, or nullptr.
const double* HeadEstimator::Buffers::row_bias(const QueryRow& row) {
  if (row.alibi_slope == 0) return nullptr;
  bias.assign(keys, 0);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t distance = row.anchor - static_cast<int64_t>(slots[i]);
    bias[i] = -double{row.alibi_slope} * static_cast<double>(distance < 0 ? -distance : distance);
  }
  return bias.data();
}

void HeadEstimator::Buffers::weigh(const HeadBlock& block, const Profile& profile) {
  const auto gather_scales = [&](std::span<const float> from, std::vector<double>& to) {
    to.assign(from.empty() ? 0 : keys, 1.0);
    for (size_t i = 0; i < slots.size() && !to.empty(); ++i) to[i] = from[slots[i]];
  };
  gather_scales(block.key_scales, key_scale);
  gather_scales(block.value_scales, value_scale);
  scale_min = scale_max = 1;
  for (double s : value_scale) {
    scale_min = std::min(scale_min, std::fabs(s));
    scale_max = std::max(scale_max, std::fabs(s));
  }
  rounding.resize(weight.size());
  if (rounds) logits.resize(weight.size());
  sums.assign(block.rows.size(), {});
  coefficients_of.resize(block.rows.size());
  for (size_t r = 0; r < block.rows.size(); ++r) {
    if (result.rows[r].empty()) continue;
    const QueryRow& row = block.rows[r];
    const Coefficients& c = coefficients_of[r] = row_coefficients(block, profile, r);
    double* w = &weight[r * keys];
    double* b = &rounding[r * keys];
    sums[r] = ops.weights({.scores = w,
                           .rounding = b,
                           .logits = rounds ? &logits[r * keys] : nullptr,
                           .visible = &visible[r * keys],
                           .key_scale = key_scale.empty() ? nullptr : key_scale.data(),
                           .bias = row_bias(row),
                           .keys = keys,
                           .scale = block.shape.scale,
                           .softcap = block.shape.softcap,
                           .extra_score = row.sink ? double{*row.sink} : -kInfinity,
                           .relative = c.probability_relative,
                           .absolute = c.probability_absolute,
                           .common = c.accumulation});
    for (size_t i = 0; i < value_scale.size(); ++i) {
      w[i] *= value_scale[i];
      b[i] *= std::fabs(value_scale[i]);
    }
  }
}

void HeadEstimator::Buffers::accumulate(const HeadBlock& block) {
  const uint32_t rows = static_cast<uint32_t>(block.rows.size());
  output.assign(size_t{rows} * value_stride, 0);
  absolute.assign(size_t{rows} * value_stride, 0);
  if (rounds) {
    rounded.assign(size_t{rows} * value_stride, 0);
    rounded_low.assign(size_t{rows} * value_stride, 0);
  }
  value_max = 0;
  for (uint32_t first = 0; first < slots.size(); first += kTileKeys) {
    const double* v = decode_tile(block.values, block, block.shape.dim_v, value_stride, first);
    const uint32_t count =
        std::min<uint32_t>(kTileKeys, static_cast<uint32_t>(slots.size()) - first);
    for (uint32_t i = 0; i < count; ++i) {
      const double factor = value_scale.empty() ? 1 : std::fabs(value_scale[first + i]);
      value_max = std::max(value_max, largest[i] * factor);
    }
    AccumulateArgs args{.weight = weight.data() + first,
                        .rounding = rounding.data() + first,
                        .weight_stride = keys,
                        .value = v,
                        .rows = rows,
                        .keys = count,
                        .stride = value_stride,
                        .output = output.data(),
                        .absolute = absolute.data()};
    ops.accumulate(args);
    if (!rounds) continue;
    args.weight = centre.data() + first;
    args.rounding = radius.data() + first;
    args.output = rounded.data();
    args.absolute = rounded_low.data();
    ops.accumulate(args);
  }
}

HeadEstimator::HeadEstimator(const BlockOps& ops)
    : ops_(ops), buffers_(std::make_unique<Buffers>(ops)) {}
HeadEstimator::~HeadEstimator() = default;

const HeadEstimate& HeadEstimator::run(const HeadBlock& block, const Profile& profile,
                                       const EstimateOptions& options) {
  Buffers& b = *buffers_;
  b.rounds = options.rounded && Buffers::may_round(block, profile);
  b.gather(block);
  b.decode_queries(block);
  b.score(block);
  b.weigh(block, profile);
  if (b.rounds) b.round(block, profile);
  b.accumulate(block);
  b.finish(block, profile);
  if (options.rounded) b.finish_rounded(block, profile);
  return b.result;
}

}  // namespace kv::reference
