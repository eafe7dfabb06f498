#include "reference/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/core/check.h"
#include "reference/bounds.h"
#include "reference/elementary.h"
#include "reference/exactness.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kTileKeys = 64;  // K or V rows decoded at once: 64 KiB at 128 dimensions
constexpr double kUnit64 = 0x1p-53;

// Of a positive normal number.
int exponent_of(double x) { return static_cast<int>(std::bit_cast<uint64_t>(x) >> 52) - 1023; }

uint32_t round_up(size_t n, uint32_t multiple) {
  return static_cast<uint32_t>((n + multiple - 1) / multiple * multiple);
}

}  // namespace

struct HeadEstimator::Buffers {
  const BlockOps& ops;
  HeadEstimate result;

  // Keys that at least one row sees, in ascending order of slot; everything below is compacted to
  // them and padded with hidden keys to a multiple of four.
  std::vector<uint32_t> slots;
  uint32_t keys = 0, key_stride = 0, value_stride = 0;
  std::vector<uint8_t> visible;         // [rows][keys]
  std::vector<uint64_t> span;           // [rows]
  std::vector<uint8_t> special;         // [keys]: K or V is not finite
  std::vector<double> key_norm;         // [keys]
  double key_max = 0, value_max = 0;    // scales included
  double scale_min = 1, scale_max = 1;  // of V
  std::vector<double> query, query_norm, weight, rounding, output, absolute, bound, error;
  std::vector<double> key_scale, value_scale, bias;
  std::vector<double> tile, square, largest;
  std::vector<const std::byte*> pointers;
  std::vector<WeightSums> sums;

  explicit Buffers(const BlockOps& o) : ops(o) {}
  void gather(const HeadBlock& block);
  void decode_queries(const HeadBlock& block);
  void score(const HeadBlock& block);
  void weigh(const HeadBlock& block, const Profile& profile);
  void accumulate(const HeadBlock& block);
  void finish(const HeadBlock& block, const Profile& profile);

 private:
  Coefficients row_coefficients(const HeadBlock& block, const Profile& profile, size_t row) const;
  const double* decode_tile(std::span<const std::byte* const> source, const HeadBlock& block,
                            uint32_t dim, uint32_t stride, uint32_t first);
  void find_extent(const QueryRow& row, size_t index);
  const double* row_bias(const QueryRow& row);
  void mark_special(size_t row);
  bool may_be_unit(size_t row) const;
  bool may_be_dyadic(const HeadBlock& block, const Profile& profile, size_t row) const;
  static double rotation_norm(const QueryRow& row);
  bool operands_fit(const Coefficients& c) const;
  void finish_row(const HeadBlock& block, const Profile& profile, size_t row);
};

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
    ops.scores({.query = query.data(),
                .key = k,
                .rows = rows,
                .keys = count,
                .stride = key_stride,
                .out = weight.data() + first,
                .out_stride = keys});
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
                       .query_dtype = block.shape.query_dtype});
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
  sums.assign(block.rows.size(), {});
  for (size_t r = 0; r < block.rows.size(); ++r) {
    if (result.rows[r].empty()) continue;
    const QueryRow& row = block.rows[r];
    const Coefficients c = row_coefficients(block, profile, r);
    double* w = &weight[r * keys];
    double* b = &rounding[r * keys];
    sums[r] = ops.weights({.scores = w,
                           .rounding = b,
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
  value_max = 0;
  for (uint32_t first = 0; first < slots.size(); first += kTileKeys) {
    const double* v = decode_tile(block.values, block, block.shape.dim_v, value_stride, first);
    const uint32_t count =
        std::min<uint32_t>(kTileKeys, static_cast<uint32_t>(slots.size()) - first);
    for (uint32_t i = 0; i < count; ++i) {
      const double factor = value_scale.empty() ? 1 : std::fabs(value_scale[first + i]);
      value_max = std::max(value_max, largest[i] * factor);
    }
    ops.accumulate({.weight = weight.data() + first,
                    .rounding = rounding.data() + first,
                    .weight_stride = keys,
                    .value = v,
                    .rows = rows,
                    .keys = count,
                    .stride = value_stride,
                    .output = output.data(),
                    .absolute = absolute.data()});
  }
}

void HeadEstimator::Buffers::mark_special(size_t row) {
  const uint8_t* seen = &visible[row * keys];
  for (size_t i = 0; i < slots.size(); ++i) {
    if (seen[i] && special[i]) result.rows[row].finite = false;
  }
}

void HeadEstimator::Buffers::finish(const HeadBlock& block, const Profile& profile) {
  bound.assign(output.size(), 0);
  error.assign(output.size(), 0);
  for (size_t r = 0; r < block.rows.size(); ++r) {
    RowEstimate& row = result.rows[r];
    row.output = &output[r * value_stride];
    row.bound_low = &bound[r * value_stride];
    row.own_error = &error[r * value_stride];
    mark_special(r);
    if (row.empty()) row.lse = row.score_max = -kInfinity;
    if (!row.empty() && row.finite) finish_row(block, profile, r);
  }
}

double HeadEstimator::Buffers::rotation_norm(const QueryRow& row) {
  double square = 0;
  for (double e : row.rotated_error) square += e * e;
  return std::sqrt(square);
}

// As RowFacts::operands_fit, over all keys that any row sees.
bool HeadEstimator::Buffers::operands_fit(const Coefficients& c) const {
  return std::max(key_max, value_max) <= c.operand_max && scale_max <= c.folded_scale_max;
}

// Whether exactness.h might certify the row: all weights are 1 or negligible.
bool HeadEstimator::Buffers::may_be_unit(size_t row) const {
  if (sums[row].score_max != 0) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double w = weight[row * keys + i];
    if (visible[row * keys + i] && w != 1 && w > 2 * kNegligibleWeight) return false;
  }
  return true;
}

// Whether precise/dyadic.h might certify the row: its weights are near powers of two, or vanish.
bool HeadEstimator::Buffers::may_be_dyadic(const HeadBlock& block, const Profile& profile,
                                           size_t row) const {
  const QueryRow& from = block.rows[row];
  const bool plain = key_scale.empty() && value_scale.empty() && block.shape.softcap == 0 &&
                     from.alibi_slope == 0 && !from.sink && from.rotated.empty();
  if (!plain || !rounding_is_declared(profile)) return false;
  const double quarter = 0.25 * dtype_unit_roundoff(profile.probability_dtype);
  const double quantum = row_coefficients(block, profile, row).probability_absolute;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double w = weight[row * keys + i];
    if (!visible[row * keys + i] || w < quantum) continue;
    const double below = power_of_two(exponent_of(w));
    if (w - below > quarter * w && 2 * below - w > quarter * w) return false;
  }
  return true;
}

// Everything here mirrors precise/row.cpp with each Theta_i replaced by 0 (below) or by its largest
// value (for the vacuous test and the own error), S_i by |q||k_i| (Cauchy-Schwarz).
void HeadEstimator::Buffers::finish_row(const HeadBlock& block, const Profile& profile, size_t r) {
  RowEstimate& row = result.rows[r];
  const QueryRow& from = block.rows[r];
  const Coefficients c = row_coefficients(block, profile, r);
  const double sink_weight = from.sink ? exp_nonpositive(*from.sink - sums[r].score_max) : 0;
  const double total = sums[r].weights + sink_weight;
  row.score_max = sums[r].score_max;
  row.lse = row.score_max + log_at_least_one(total);

  double magnitude = 0, farthest = sums[r].score_abs;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double scale = key_scale.empty() ? 1 : std::fabs(key_scale[i]);
    if (visible[r * keys + i]) magnitude = std::max(magnitude, key_norm[i] * scale);
  }
  const double key_size = magnitude * std::fabs(double{block.shape.scale});
  magnitude = key_size * query_norm[r];
  if (from.sink) farthest = std::max(farthest, std::fabs(double{*from.sink}));
  // The anchor may lie outside the slots: there may be more query rows than slots.
  const int64_t from_first = from.anchor - int64_t{slots.front()};
  const int64_t from_last = from.anchor - int64_t{slots.back()};
  const double bias_max = std::fabs(double{from.alibi_slope}) *
                          static_cast<double>(std::max(std::abs(from_first), std::abs(from_last)));
  const double lse_abs = std::fabs(row.lse);

  const double n = static_cast<double>(row.keys);
  const double weight_error =
      (block.shape.dim_k + 10) * kUnit64 * std::max(magnitude + bias_max, farthest) +
      0x1p-49 * (1 + magnitude + bias_max + farthest);
  const double relative = 1.01 * (2 * weight_error + 2 * (n + 6) * kUnit64);
  row.lse_own_error = relative + (lse_abs + farthest + 1) * 0x1p-49;

  // Weights of exactly one: the full bound may leave out everything but the division.
  const bool maybe_exact = may_be_unit(r) && from.alibi_slope == 0 && !from.sink;
  const double quantum_error = c.dequantised_quantum * 1.01 * query_norm[r] * block.shape.dim_k *
                               std::fabs(double{block.shape.scale});
  const double rotation_error = c.scores < 1 ? 2.1 * key_size * rotation_norm(from) : 0;
  const double error_max =
      c.scores * magnitude + quantum_error + rotation_error + c.tanh * (farthest + bias_max) +
      c.bias * bias_max + (2 * c.argument + 2 * c.distance) * farthest + c.exponential +
      (c.split_scores + c.split_lse) * farthest + c.split_lse * lse_abs + c.split_constant;
  const double quantum = c.probability_absolute *
                         (c.probability_normalised ? std::max(1.0, total) : 1) /
                         (c.scale_in_probability ? std::min(1.0, scale_min) : 1);
  row.vacuous = !operands_fit(c) || !(error_max < 0.25) || !(c.row_sum < 1) ||
                !(c.accumulation < 1) ||
                !(1.4 * c.probability_relative + n * quantum / total < 0.5);
  const double row_sum = maybe_exact ? 0 : c.row_sum;
  row.lse_bound_low = maybe_exact ? 0
                                  : (row_sum + c.exponential + kUnit32 * (2 * lse_abs + 4) +
                                     c.log2_error * 0x1.62e42fefa39efp-1) *
                                        (1 - 0x1p-30);
  row.dyadic = may_be_dyadic(block, profile, r);
  const double smallest = c.probability_relative + c.accumulation;  // of rounding[i] / weight[i]
  // B1 follows the accumulation error and may find none: P's rounding is all that surely counts.
  const double share =
      order_is_known(profile) ? c.probability_relative / smallest * (1 - 0x1p-40) : 1;
  for (uint32_t j = 0; j < block.shape.dim_v; ++j) {
    const size_t at = r * value_stride + j;
    output[at] /= total;
    const double size = std::fabs(output[at]);
    const double centre = profile.row_sum == RowSum::kOfRounded ? sums[r].rounding * size : 0;
    const double spread = maybe_exact ? 0 : std::max(0.0, absolute[at] - centre) / total;
    bound[at] = (spread * share + size * (row_sum + c.division)) * (1 - 0x1p-30);
    error[at] = relative * (absolute[at] / (smallest * total) * (1 + 0x1p-40) + size) +
                0x1p-1000 * value_max;
  }
}

HeadEstimator::HeadEstimator(const BlockOps& ops)
    : ops_(ops), buffers_(std::make_unique<Buffers>(ops)) {}
HeadEstimator::~HeadEstimator() = default;

const HeadEstimate& HeadEstimator::run(const HeadBlock& block, const Profile& profile) {
  Buffers& b = *buffers_;
  b.gather(block);
  b.decode_queries(block);
  b.score(block);
  b.weigh(block, profile);
  b.accumulate(block);
  b.finish(block, profile);
  return b.result;
}

}  // namespace kv::reference
