// Hypotheses with a number that is not in the catalogue, but found from a wrong LSE.
#include <fmt/format.h>

#include <cmath>

#include "harness/explain/catalogue.h"

namespace kv {
namespace {

constexpr uint32_t kRowsMax = 8;  // wrong ones that are tried

double error_at(const Scene& scene, const RowAt& at, double factor) {
  Reading r = scene.honest(at);
  r.scale *= factor;
  return scene.lse_error(at, r);
}

/// A root between two factors at which the error has different signs.
double root_between(const Scene& scene, const RowAt& at, double low, double high) {
  constexpr int kSteps = 60;
  const bool rises = error_at(scene, at, high) > 0;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    ((error_at(scene, at, middle) > 0) == rises ? high : low) = middle;
  }
  return (low + high) / 2;
}

struct Fit {
  double factor = 1;
  double slope = 0;  // of the LSE: how well it tells the factor
};

/// The factor nearest to 1 under which the row's LSE is the observed one.
std::optional<Fit> fit(const Scene& scene, const RowAt& at) {
  constexpr int kSteps = 64;
  constexpr double kStep = 0x1.05p+0;  // up to a factor of 3.5 in either direction
  for (const bool up : {true, false}) {
    double from = 1, error = error_at(scene, at, from);
    for (int i = 0; i < kSteps && std::isfinite(error); ++i) {
      const double to = up ? from * kStep : from / kStep;
      const double next = error_at(scene, at, to);
      if ((next > 0) != (error > 0)) {
        return Fit{root_between(scene, at, from, to), std::fabs((next - error) / (to - from))};
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
  uint32_t tried = 0;
  for (const RowAt& at : scene.rows()) {
    const Reading honest = scene.honest(at);
    if (std::isnan(scene.lse_error(at, honest)) || scene.contains(at, honest)) continue;
    if (tried++ == kRowsMax) break;
    const std::optional<Fit> one = fit(scene, at);
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
