// Hypotheses with a number that is not in the catalogue, but found from a wrong LSE.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr uint32_t kRowsMax = 8;     // wrong ones that are tried
constexpr uint32_t kLookedMax = 64;  // rows beside the first wrong one that are looked at

/// What the LSE of a row is made of, and what was observed.
struct Terms {
  std::vector<double> dots, bias;
  double scale = 1, softcap = 0;
  std::optional<double> sink;
  double observed = 0;

  double logit(size_t i, double factor) const {
    const double score = factor * scale * dots[i];
    return softcap > 0 ? softcap * reference::tanh_of(score / softcap) : score;
  }
  /// Observed LSE less that of scores with another factor.
  double error(double factor) const {
    std::vector<double> logits;
    if (sink) logits.push_back(*sink);
    for (size_t i = 0; i < dots.size(); ++i) logits.push_back(logit(i, factor) + bias[i]);
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double x : logits) sum += reference::exp_nonpositive(x - top);
    return observed - (top + log_of(sum));
  }
};

/// Nothing for a row that sees nothing, or whose LSE is no number.
std::optional<Terms> terms_of(const Scene& scene, const RowAt& at, const Reading& honest) {
  const double error = scene.lse_error(at, honest);
  Terms terms{.dots = scene.dots(honest), .bias = scene.scores(honest)};
  if (std::isnan(error) || terms.dots.empty()) return std::nullopt;
  terms.scale = honest.scale;
  terms.softcap = honest.softcap;
  terms.sink = honest.sink;
  for (size_t i = 0; i < terms.dots.size(); ++i) terms.bias[i] -= terms.logit(i, 1);
  terms.observed = error - terms.error(1);
  return terms;
}

/// A root between two factors at which the error has different signs.
double root_between(const Terms& terms, double low, double high) {
  constexpr int kSteps = 60;
  const bool rises = terms.error(high) > 0;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    ((terms.error(middle) > 0) == rises ? high : low) = middle;
  }
  return (low + high) / 2;
}

struct Fit {
  double factor = 1;
  double slope = 0;  // of the LSE: how well it tells the factor
};

/// The factor nearest to 1 under which the row's LSE is the observed one.
std::optional<Fit> fit(const Terms& terms) {
  constexpr int kSteps = 64;
  constexpr double kStep = 0x1.05p+0;  // up to a factor of 3.5 in either direction
  for (const bool up : {true, false}) {
    double from = 1, error = terms.error(from);
    for (int i = 0; i < kSteps && std::isfinite(error); ++i) {
      const double to = up ? from * kStep : from / kStep;
      const double next = terms.error(to);
      if ((next > 0) != (error > 0)) {
        return Fit{root_between(terms, from, to), std::fabs((next - error) / (to - from))};
      }
      from = to;
      error = next;
    }
  }
  return std::nullopt;
}

}  // namespace

void fitted_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  if (scene.c().shape.scale == 0) return;
  std::optional<Fit> best;
  uint32_t tried = 0, looked = 0;
  for (const RowAt& at : scene.rows()) {
    if (tried == kRowsMax || looked == kLookedMax) break;
    looked += tried > 0;
    const Reading honest = scene.honest(at);
    if (scene.contains(at, honest)) continue;
    ++tried;
    const std::optional<Terms> terms = terms_of(scene, at, honest);
    if (!terms) continue;
    const std::optional<Fit> one = fit(*terms);
    if (!one) return;
    if (!best || one->slope > best->slope) best = one;
  }
  if (!best) return;
  Hypothesis h{
      "scale-factor",
      fmt::format("scores, before a softcap, are {:.6g} times what they should be", best->factor),
      [factor = best->factor](const Scene&, const RowAt&, Reading& r) { r.scale *= factor; }};
  h.fitted = true;
  out.push_back(std::move(h));
}

}  // namespace kv
