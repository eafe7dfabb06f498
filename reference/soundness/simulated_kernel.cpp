#include "reference/soundness/simulated_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/elementary.h"
#include "reference/soundness/fused_step.h"
#include "reference/soundness/kernel_operands.h"

namespace kv::reference {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896340736f, kLn2 = 0.693147180559945309417f;

float ulps_away(float x, int ulps) {
  if (x == 0 || !std::isfinite(x)) return x;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) + static_cast<uint32_t>(ulps));
}

// No libm: the campaign and the detection table are the same on every machine.
double natural_log_of(float x) { return log_at_least_one(double{x}); }
float natural_log(float x) { return static_cast<float>(natural_log_of(x)); }

// Running state of one split, in the kernel's own units: scores times `sigma` are base-2 exponents.
struct Split {
  float max = kMinusInfinity;
  float partial[4] = {0, 0, 0, 0};  // of the row sum, as four threads would hold it
  float mma_sum = 0;
  std::vector<float> output;
};

class Kernel {
 public:
  Kernel(const RowInputs& in, const KernelConfig& config, Draw& draw)
      : in_(in), k_(config), draw_(draw), of_(in, config, draw) {}
  KernelResult run();

 private:
  float ex2(float z, size_t key);
  float score(size_t i);
  std::vector<std::vector<size_t>> tiles() const;
  void visit(const std::vector<size_t>& tile, Split& s);
  double folded(float p, size_t key) const;
  void probabilities(const std::vector<size_t>& tile, Split& s);
  void add_values(const std::vector<size_t>& tile, Split& s);
  void add_sink(Split& s);
  void finish(Split& s, std::vector<float>& output, float& lse);
  void merge_at_once(const std::vector<std::vector<float>>& outputs, const std::vector<float>& lses,
                     std::vector<float>& output, float& lse);
  void merge_in_turn(const std::vector<std::vector<float>>& outputs, const std::vector<float>& lses,
                     std::vector<float>& output, float& lse);
  KernelResult run_unfused();
  KernelResult result(const std::vector<float>& output, float lse) const;
  float add_column(float start, const std::vector<double>& weight,
                   const std::vector<double>& column) const;

  const RowInputs& in_;
  const KernelConfig& k_;
  Draw& draw_;
  const KernelOperands of_;
  float sigma_ = 1;
  std::vector<float> score_;    // before sigma
  std::vector<double> weight_;  // of the tile, rounded, by position in the tile
  std::vector<double> summed_;  // the same, V's scale not folded in
  std::vector<float> plain_;    // not rounded
};

float Kernel::ex2(float z, size_t key) {
  if (z == 0) return 1;
  if (!(z > -126)) return 0;  // flushed
  const float exact = static_cast<float>(exp2_of(double{z}));
  switch (k_.exp2_error) {
    case Exp2Error::kNone:
      return exact;
    case Exp2Error::kRandom:
      return ulps_away(exact, static_cast<int>(draw_.below(5)) - 2);
    case Exp2Error::kHigh:
      return ulps_away(exact, 2);
    case Exp2Error::kLow:
      return ulps_away(exact, -2);
    case Exp2Error::kByParity:
      return ulps_away(exact, key % 2 ? 2 : -2);
  }
  return exact;
}

float Kernel::score(size_t i) {
  const size_t d = in_.shape.dim_k;
  float s = sum_of_products(k_.scores, 0,
                            {.a = of_.query.data(),
                             .b = &of_.keys[i * d],
                             .count = d,
                             .a_normal = of_.query_normal,
                             .b_normal = of_.key_normal});
  if (of_.scales_scores) s *= static_cast<float>(in_.key_scales[i]);
  const float scale = in_.shape.scale, cap = in_.shape.softcap;
  if (cap == 0 && in_.bias[i] == 0) return s;
  float x = s * scale;
  if (cap > 0) {
    double t = tanh_of(static_cast<double>(s * (scale / cap)));
    if (k_.tanh_error == 1) t *= 1 + 0x1.fap-12 * (2 * draw_.uniform() - 1);
    if (k_.tanh_error == 2) t *= 1 + (i % 2 ? 0x1.fep-12 : -0x1.fep-12);
    x = cap * static_cast<float>(t);
  }
  return x + static_cast<float>(in_.bias[i]);
}

std::vector<std::vector<size_t>> Kernel::tiles() const {
  std::vector<std::vector<size_t>> tiles;
  uint64_t current = 0;
  for (size_t i = 0; i < in_.count(); ++i) {
    const uint64_t tile = in_.slots[i] / k_.tile_slots;
    if (tiles.empty() || tile != current) tiles.emplace_back();
    current = tile;
    tiles.back().push_back(i);
  }
  return tiles;
}

// The operand that meets V: P, times V's scale where that is folded, rounded.
double Kernel::folded(float p, size_t i) const {
  const float scaled = of_.scales_weights ? p * static_cast<float>(in_.value_scales[i]) : p;
  return rounded_operand(k_.probability_dtype, scaled);
}

void Kernel::probabilities(const std::vector<size_t>& tile, Split& s) {
  const float at_max = s.max * sigma_;
  plain_.assign(k_.tile_slots, 0);
  summed_.assign(k_.tile_slots, 0);
  weight_.assign(k_.tile_slots, 0);
  for (size_t i : tile) {
    const size_t at = in_.slots[i] % k_.tile_slots;
    const float z =
        k_.fused_scaling ? std::fma(score_[i], sigma_, -at_max) : score_[i] * sigma_ - at_max;
    plain_[at] = ex2(z, i);
    summed_[at] = rounded_operand(k_.probability_dtype, plain_[at]);
    weight_[at] = folded(plain_[at], i);
  }
  if (!k_.row_sum_of_rounded) {
    for (size_t at = 0; at < plain_.size(); ++at) s.partial[at / 2 % 4] += plain_[at];
    return;
  }
  const double one = 1;
  s.mma_sum = sum_of_products(k_.values, s.mma_sum,
                              {.a = summed_.data(),
                               .b = &one,
                               .b_stride = 0,
                               .count = summed_.size(),
                               .a_normal = of_.weight_normal});
}

float Kernel::add_column(float start, const std::vector<double>& weight,
                         const std::vector<double>& column) const {
  return sum_of_products(k_.values, start,
                         {.a = weight.data(),
                          .b = column.data(),
                          .count = column.size(),
                          .a_normal = of_.weight_normal,
                          .b_normal = of_.value_normal});
}

void Kernel::add_values(const std::vector<size_t>& tile, Split& s) {
  const size_t d = in_.shape.dim_v;
  std::vector<double> column(k_.tile_slots, 0);
  for (size_t j = 0; j < d; ++j) {
    for (size_t i : tile) column[in_.slots[i] % k_.tile_slots] = of_.values[i * d + j];
    s.output[j] = add_column(s.output[j], weight_, column);
  }
}

// One tile of the online softmax.
void Kernel::visit(const std::vector<size_t>& tile, Split& s) {
  float max = s.max;
  for (size_t i : tile) max = std::max(max, score_[i]);
  if (s.max != kMinusInfinity) {
    const float z = (s.max - max) * sigma_;
    float alpha = 1;
    if (k_.lazy_rescale && z >= -8) {
      max = s.max;
    } else {
      alpha = ex2(z, 0);
    }
    for (float& x : s.partial) x *= alpha;
    s.mma_sum *= alpha;
    for (float& x : s.output) x *= alpha;
  }
  s.max = max;
  probabilities(tile, s);
  add_values(tile, s);
}

// The sink joins the row sum last, like a key without a value.
void Kernel::add_sink(Split& s) {
  const float sink = static_cast<float>(*in_.sink) / (sigma_ * kLn2);
  if (sink > s.max) {
    const float alpha = ex2((s.max - sink) * sigma_, 0);
    for (float& x : s.partial) x *= alpha;
    s.mma_sum *= alpha;
    for (float& x : s.output) x *= alpha;
    s.max = sink;
  }
  const float weight = ex2((sink - s.max) * sigma_, 1);
  (k_.row_sum_of_rounded ? s.mma_sum : s.partial[0]) += weight;
}

void Kernel::finish(Split& s, std::vector<float>& output, float& lse) {
  const float sum = k_.row_sum_of_rounded
                        ? s.mma_sum
                        : (s.partial[0] + s.partial[1]) + (s.partial[2] + s.partial[3]);
  float inverse = 1 / sum;
  if (k_.division_error > 0) inverse = ulps_away(inverse, static_cast<int>(draw_.below(3)) - 1);
  for (float x : s.output) output.push_back(x * inverse);
  lse = s.max * (sigma_ * kLn2) + natural_log(sum);
}

// All weights first, as a combine kernel does.
void Kernel::merge_at_once(const std::vector<std::vector<float>>& outputs,
                           const std::vector<float>& lses, std::vector<float>& output, float& lse) {
  const float max = *std::max_element(lses.begin(), lses.end());
  float sum = 0;
  std::vector<float> weights;
  for (float x : lses) {
    weights.push_back(ex2((x - max) * kLog2e, 0));
    sum += weights.back();
  }
  output.assign(in_.shape.dim_v, 0);
  for (size_t s = 0; s < outputs.size(); ++s) {
    const float weight = weights[s] / sum;
    for (size_t j = 0; j < output.size(); ++j) {
      output[j] = std::fma(weight, outputs[s][j], output[j]);
    }
  }
  lse = max + natural_log(sum);
}

// Pairwise with a running (max, sum), in base 2.
void Kernel::merge_in_turn(const std::vector<std::vector<float>>& outputs,
                           const std::vector<float>& lses, std::vector<float>& output, float& lse) {
  float max = kMinusInfinity, sum = 0;
  output.assign(in_.shape.dim_v, 0);
  for (size_t s = 0; s < outputs.size(); ++s) {
    const float z = lses[s] * kLog2e, next = std::max(max, z);
    const float old = max == kMinusInfinity ? 0 : ex2(max - next, 0), fresh = ex2(z - next, 1);
    sum = sum * old + fresh;
    for (size_t j = 0; j < output.size(); ++j) {
      output[j] = output[j] * old + outputs[s][j] * fresh;
    }
    max = next;
  }
  for (float& x : output) x *= 1 / sum;
  lse = (max + static_cast<float>(natural_log_of(sum) * 0x1.71547652b82fep+0)) * kLn2;
}

KernelResult Kernel::result(const std::vector<float>& output, float lse) const {
  KernelResult r;
  for (float x : output) {
    r.output.push_back(decode(in_.shape.output_dtype, encode(in_.shape.output_dtype, x)));
  }
  r.lse = lse;
  return r;
}

// Scores, softmax and P.V one after the other: P is normalised, then rounded.
KernelResult Kernel::run_unfused() {
  Split s;
  s.output.assign(in_.shape.dim_v, 0);
  for (float x : score_) s.max = std::max(s.max, x);
  if (in_.sink) s.max = std::max(s.max, static_cast<float>(*in_.sink) / (sigma_ * kLn2));
  std::vector<float> p;
  float sum = 0;
  for (size_t i = 0; i < in_.count(); ++i) {
    p.push_back(ex2((score_[i] - s.max) * sigma_, i));
    sum += p.back();
  }
  if (in_.sink) sum += ex2(static_cast<float>(*in_.sink) * kLog2e - s.max * sigma_, 1);
  std::vector<double> weight(in_.slots.back() + 1, 0), column(weight.size(), 0);
  for (size_t i = 0; i < in_.count(); ++i) {
    weight[in_.slots[i]] = folded(p[i] / sum, i);
  }
  for (size_t j = 0; j < in_.shape.dim_v; ++j) {
    for (size_t i = 0; i < in_.count(); ++i) {
      column[in_.slots[i]] = of_.values[i * in_.shape.dim_v + j];
    }
    s.output[j] = add_column(0, weight, column);
  }
  return result(s.output, s.max * (sigma_ * kLn2) + natural_log(sum));
}

KernelResult Kernel::run() {
  const size_t n = in_.count();
  bool scaled = in_.shape.softcap > 0;
  for (double b : in_.bias) scaled = scaled || b != 0;
  sigma_ = scaled ? kLog2e : in_.shape.scale * kLog2e;
  for (size_t i = 0; i < n; ++i) {
    float x = score(i);
    if (scaled && in_.shape.softcap == 0 && in_.bias[i] == 0) x *= in_.shape.scale;
    score_.push_back(x);
  }
  if (k_.unfused) return run_unfused();

  const auto all = tiles();
  const size_t each = (all.size() + k_.splits - 1) / k_.splits;
  std::vector<std::vector<float>> outputs;
  std::vector<float> lses;
  for (size_t first = 0; first < all.size(); first += each) {
    std::vector<std::vector<size_t>> order(
        all.begin() + static_cast<long>(first),
        all.begin() + static_cast<long>(std::min(all.size(), first + each)));
    if (k_.order == VisitOrder::kDescending) std::reverse(order.begin(), order.end());
    for (size_t i = order.size(); k_.order == VisitOrder::kShuffled && i > 1; --i) {
      std::swap(order[i - 1], order[draw_.below(i)]);
    }
    Split s;
    s.output.assign(in_.shape.dim_v, 0);
    for (const auto& tile : order) visit(tile, s);
    if (in_.sink && first == 0) add_sink(s);
    outputs.emplace_back();
    lses.push_back(0);
    finish(s, outputs.back(), lses.back());
  }
  if (outputs.size() == 1) return result(outputs[0], lses[0]);
  std::vector<float> output;
  float lse = 0;
  if (k_.sequential_merge) {
    merge_in_turn(outputs, lses, output, lse);
  } else {
    merge_at_once(outputs, lses, output, lse);
  }
  return result(output, lse);
}

}  // namespace

KernelResult run_kernel(const RowInputs& inputs, const KernelConfig& config, Draw& draw) {
  return Kernel(inputs, config, draw).run();
}

Declaration declaration_of(const KernelConfig& k) {
  Declaration d;
  d.tile_slots = k.unfused ? 0 : k.tile_slots;
  d.order = k.order == VisitOrder::kAscending    ? TileOrder::kAscending
            : k.order == VisitOrder::kDescending ? TileOrder::kDescending
                                                 : TileOrder::kAny;
  d.accumulate =
      k.values.fused_multiply_add ? Declaration::Accumulate::kFma : Declaration::Accumulate::kMma;
  d.probability_declared = true;
  d.probability_dtype = k.probability_dtype;
  d.row_sum_of_rounded = k.row_sum_of_rounded;
  d.maximum_is_exact = !k.lazy_rescale && !k.unfused;
  d.splits = k.splits;
  return d;
}

}  // namespace kv::reference
