// What B2 allows, from below, for all rows of a head at once: RoundedWeights of precise/ordered.h
// with every error taken from below (the double tier's own left out, those that only some tiles
// have set to 0), so that each interval lies inside the one that decide.h would find.
#include <algorithm>
#include <cmath>

#include "harness/core/wide.h"
#include "reference/attention_buffers.h"
#include "reference/elementary.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBelow = 1 - 0x1p-20;  // more than the two computations differ by

bool has_grid(DType type) { return type != DType::kI8 && type != DType::kF32; }

RoundingGrid grid_of(DType type) {
  RoundingGrid grid;
  grid.mantissa = -exponent_of(dtype_unit_roundoff(type)) - 1;
  grid.exponent_min = exponent_of(smallest_normal(type));
  grid.largest = dtype_max(type);
  return grid;
}

struct RowFactors {
  double denominator, relative, own_relative, rounding_min, tiny;
};
/// The sums of a row's elements, and where their bounds go.
struct RowElements {
  double* __restrict value;
  const double* __restrict absolute;
  double* __restrict low;
  double* __restrict error;
};

KV_WIDE void finish_elements(const RowFactors& f, const RowElements& e, uint32_t count) {
  for (uint32_t j = 0; j < count; ++j) {
    const double value = e.value[j] / f.denominator, size = std::fabs(value);
    // Middles are at most twice the weights, and a quantum of P, which `absolute` holds.
    const double middles = 3 * e.absolute[j] / (f.rounding_min * f.denominator);
    e.value[j] = value;
    e.low[j] = (e.low[j] / f.denominator + size * f.relative) * (1 - 0x1p-30);
    e.error[j] = f.own_relative * (middles + size) + f.tiny;
  }
}

}  // namespace

/// Compacted keys [first, last) of one tile of the kernel, in the order in which it visits them.
struct HeadEstimator::Buffers::Tile {
  size_t first = 0, last = 0;
  uint64_t seen = 0, hull = 0;  // visible keys; last visible slot - first visible slot + 1
  double maximum = 0, running_maximum = 0;
  double scale = 1, scale_error = 0;
};

bool HeadEstimator::Buffers::may_round(const HeadBlock& block, const Profile& profile) {
  return rounding_is_known(profile) && has_grid(profile.probability_dtype) &&
         block.key_scales.empty() && block.value_scales.empty();
}

// `c.scores` is of the sum of |q||k| here, without the scale.
double HeadEstimator::Buffers::maximum_error(const Coefficients& c, const double* row_biases,
                                             size_t row) const {
  const double *x = &logits[row * keys], *size = &score_size[row * keys];
  double capped = 0, bias_max = 0, size_max = 0, farthest = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!visible[row * keys + i]) continue;
    const double b = row_biases == nullptr ? 0 : row_biases[i];
    capped = std::max(capped, std::fabs(x[i] - b));
    bias_max = std::max(bias_max, std::fabs(b));
    size_max = std::max(size_max, size[i]);
    farthest = std::max(farthest, std::fabs(x[i]));
  }
  return kBelow *
         (c.scores * size_max + c.tanh * capped + c.bias * bias_max + 4 * kUnit32 * farthest);
}

// Tiles with a visible key, and for each key the maximum that its weight is relative to.
std::vector<HeadEstimator::Buffers::Tile> HeadEstimator::Buffers::find_tiles(const Profile& profile,
                                                                             size_t row) {
  std::vector<Tile> tiles;
  maximums.assign(keys, 0);
  const double* x = &logits[row * keys];
  for (size_t first = 0, last = 0; first < slots.size(); first = last) {
    const uint32_t number = slots[first] / profile.tile_slots;
    Tile tile{.first = first, .maximum = -kInfinity};
    uint32_t nearest = 0, farthest = 0;
    for (last = first; last < slots.size() && slots[last] / profile.tile_slots == number; ++last) {
      if (!visible[row * keys + last]) continue;
      if (tile.seen++ == 0) nearest = slots[last];
      farthest = slots[last];
      tile.maximum = std::max(tile.maximum, x[last]);
    }
    tile.last = last;
    tile.hull = uint64_t{farthest} - nearest + 1;
    if (tile.seen > 0) tiles.push_back(tile);
  }
  if (profile.order == TileOrder::kDescending) std::reverse(tiles.begin(), tiles.end());
  double running = -kInfinity;
  for (Tile& tile : tiles) {
    tile.running_maximum = running = std::max(running, tile.maximum);
    std::fill(&maximums[tile.first], &maximums[tile.first] + (tile.last - tile.first), running);
  }
  return tiles;
}

void HeadEstimator::Buffers::find_scales(const Coefficients& c, const Profile& profile,
                                         double error, std::vector<Tile>& tiles) const {
  uint64_t changes = 0;  // later tiles that may raise the maximum
  for (size_t b = tiles.size(); b-- > 0;) {
    Tile& tile = tiles[b];
    const double distance = tiles.back().running_maximum - tile.running_maximum;
    tile.scale = exp_nonpositive(-distance);
    if (changes > 0) {
      const double of_scale =
          kBelow * ((c.distance + 2 * kUnit32) * distance + 2 * error +
                    static_cast<double>(changes) * (profile.exp2_error + kUnit32));
      tile.scale_error = of_scale < 1 ? of_scale * (1 + of_scale) : 1;
    }
    if (b > 0 && tile.maximum > tiles[b - 1].running_maximum - 2 * error) ++changes;
  }
}

// The tile's middles and radii in the scale of the row, and its part of the denominator. A radius
// also carries what the accumulator loses of its key in the tile itself, whatever it held before.
void HeadEstimator::Buffers::sum_tile(const Profile& profile, const Tile& tile, size_t row,
                                      double& error) {
  const Accumulation& a = profile.values;
  const uint64_t steps =
      a.fused_multiply_add ? tile.seen : std::min(tile.seen, tile.hull / a.products + 1);
  const double step = accumulation_error(a, steps), wider = 1 + tile.scale_error;
  const bool of_rounded = profile.row_sum == RowSum::kOfRounded;
  double& denominator = rounded_rows[row].denominator;
  double *middle = &centre[row * keys], *half = &radius[row * keys];
  const double* w = &weight[row * keys];
  for (size_t i = tile.first; i < tile.last; ++i) {
    middle[i] *= tile.scale;
    half[i] *= tile.scale * wider;
    if (of_rounded) {
      denominator += middle[i];
      error += half[i] + tile.scale_error * middle[i];
    } else {
      denominator += w[i];
      error += w[i] * (local_error[i] * wider + tile.scale_error);
    }
    half[i] += step * w[i];
  }
}

void HeadEstimator::Buffers::round_row(const HeadBlock& block, const Profile& profile, size_t r) {
  Coefficients c = coefficients_of[r];
  c.scores *= std::fabs(double{block.shape.scale});
  const double* biases = row_bias(block.rows[r]);
  const double error = maximum_error(c, biases, r);
  std::vector<Tile> tiles = find_tiles(profile, r);
  find_scales(c, profile, error, tiles);
  ops.round_weights({.logits = &logits[r * keys],
                     .sizes = &score_size[r * keys],
                     .bias = biases,
                     .maximums = maximums.data(),
                     .keys = keys,
                     .fixed = error + profile.exp2_error,
                     .scores = c.scores,
                     .tanh = c.tanh,
                     .bias_error = c.bias,
                     .argument = c.argument,
                     .distance = c.distance,
                     .grid = grid_of(profile.probability_dtype),
                     .scale = power_of_two(profile.probability_offset),
                     .centre = &centre[r * keys],
                     .radius = &radius[r * keys],
                     .error = local_error.data()});
  RoundedRow& row = rounded_rows[r];
  row.denominator = 0;
  double of_denominator = 0;
  for (const Tile& tile : tiles) sum_tile(profile, tile, r, of_denominator);
  const double relative = of_denominator / row.denominator + c.row_sum + c.division;
  row.known = relative < 0.3;
  if (row.known) row.relative = relative / (1 - relative) * (1 - 0x1p-30);
}

void HeadEstimator::Buffers::round(const HeadBlock& block, const Profile& profile) {
  centre.assign(weight.size(), 0);
  radius.assign(weight.size(), 0);
  local_error.resize(keys);
  rounded_rows.assign(block.rows.size(), {});
  for (size_t r = 0; r < block.rows.size(); ++r) {
    if (!result.rows[r].empty() && !block.rows[r].sink) round_row(block, profile, r);
  }
}

void HeadEstimator::Buffers::finish_rounded(const HeadBlock& block, const Profile& profile) {
  using Kind = RoundedEstimate::Kind;
  if (rounds) rounded_error.resize(rounded.size());
  const bool unknown = rounding_is_known(profile) && !rounds && block.key_scales.empty() &&
                       block.value_scales.empty();
  for (size_t r = 0; r < block.rows.size(); ++r) {
    RoundedEstimate& of_row = result.rows[r].rounded;
    of_row.kind = unknown && !block.rows[r].sink ? Kind::kNotAsked : Kind::kNone;
    if (!rounds || !rounded_rows[r].known) continue;
    const RoundedRow& row = rounded_rows[r];
    const size_t at = r * value_stride;
    finish_elements({.denominator = row.denominator,
                     .relative = row.relative,
                     .own_relative = own_relative[r],
                     .rounding_min = rounding_min[r],
                     .tiny = 0x1p-1000 * value_max},
                    {&rounded[at], &absolute[at], &rounded_low[at], &rounded_error[at]},
                    block.shape.dim_v);
    of_row = {.kind = Kind::kKnown,
              .output = &rounded[r * value_stride],
              .bound_low = &rounded_low[r * value_stride],
              .own_error = &rounded_error[r * value_stride]};
  }
}

}  // namespace kv::reference
