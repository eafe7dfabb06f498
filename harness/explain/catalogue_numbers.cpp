// Hypotheses about arithmetic: scale, softcap, base of the LSE, rescaling, splits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;

double minus_log(double x) {
  constexpr double kLeast = 0x1p-1000;  // of a split that is far below the others
  return x >= 1 ? -reference::log_at_least_one(x)
                : reference::log_at_least_one(1 / std::max(x, kLeast));
}

Hypothesis scaled(const char* name, std::string sentence,
                  std::function<double(const Shape&)> factor) {
  return {name, std::move(sentence),
          [factor](const Scene& s, const RowAt&, Reading& r) { r.scale *= factor(s.c().shape); }};
}

void scale_hypotheses(std::vector<Hypothesis>& out) {
  const auto root = [](const Shape& s) { return std::sqrt(double{1} * s.head_dim_k); };
  out.push_back(scaled("scale-dropped", "the scale is left out",
                       [](const Shape& s) { return s.scale == 0 ? 1 : 1 / double{s.scale}; }));
  out.push_back(scaled("scale-twice", "the scale is applied twice",
                       [](const Shape& s) { return double{s.scale}; }));
  out.push_back(
      scaled("scale-double", "the scale is twice too large", [](const Shape&) { return 2.0; }));
  out.push_back(scaled("scale-half", "the scale is half of what it should be",
                       [](const Shape&) { return 0.5; }));
  out.push_back(scaled(
      "scale-default", "the scale is 1/sqrt(head dimension), not the given one",
      [root](const Shape& s) { return s.scale == 0 ? 1 : 1 / (root(s) * double{s.scale}); }));
  out.push_back(
      scaled("scale-negated", "the scale has the wrong sign", [](const Shape&) { return -1.0; }));
  out.push_back(scaled("scale-log2e", "scores are multiplied by log2(e) once too often",
                       [](const Shape&) { return kLog2e; }));
  out.push_back(scaled("scale-ln2", "scores lack a factor of log2(e)",
                       [](const Shape&) { return 1 / kLog2e; }));
  for (const uint32_t dim : {64u, 128u}) {
    out.push_back({fmt::format("scale-of:{}", dim),
                   fmt::format("the scale is 1/sqrt({}), whatever is given", dim),
                   [dim](const Scene&, const RowAt&, Reading& r) {
                     r.scale = 1 / std::sqrt(static_cast<double>(dim));
                   }});
  }
  out.push_back({"softcap-ignored", "the softcap is ignored",
                 [](const Scene&, const RowAt&, Reading& r) { r.softcap = 0; }});
  out.push_back({"softcap-before-scale", "the softcap is applied before the scale",
                 [](const Scene&, const RowAt&, Reading& r) {
                   // c tanh(s qk / c) became s c tanh(qk / c): the cap of the scaled score is s c.
                   if (r.softcap > 0) r.softcap *= std::fabs(r.scale);
                 }});
}

void lse_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back({"lse-base-2", "the LSE is in base 2 where base e is declared",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = kLog2e; }});
  out.push_back({"lse-base-e", "the LSE is in base e where base 2 is declared",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = 1 / kLog2e; }});
  out.push_back({"lse-negated", "the LSE has the wrong sign",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = -1; }});
  out.push_back({"lse-wrong-only", "O is right and the LSE is wrong in a way that is not known",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_open = true; }});
}

// The accumulator is not rescaled when the maximum rises from tile t - 1 to tile t: what came
// before keeps the weight that it had under the old maximum. O and L alike.
Hypothesis missing_rescale(uint32_t tile, uint32_t t) {
  return {"rescale-missing:" + std::to_string(tile) + ":" + std::to_string(t),
          "the accumulator is not rescaled before tile " + std::to_string(t) + " of " +
              std::to_string(tile) + " keys",
          [tile, t](const Scene& s, const RowAt&, Reading& r) {
            const std::vector<double> scores = s.scores(r);
            double before = -INFINITY, with = -INFINITY;
            size_t at = 0;
            for (size_t i = 0; i < r.copies.size(); ++i) {
              if (r.copies[i] != 1) continue;
              const double score = scores[at++];
              if (i / tile < t) before = std::max(before, score);
              if (i / tile <= t) with = std::max(with, score);
            }
            if (!(with > before) || std::isinf(before)) return;
            r.bias.assign(r.copies.size(), 0);
            for (size_t i = 0; i < r.copies.size() && i / tile < t; ++i) r.bias[i] = with - before;
            r.lse_open = true;
          }};
}

/// Weights and values of each split stay relative to its own maximum.
void unrescale(const Scene& s, uint32_t size, Reading& r) {
  const std::vector<double> scores = s.scores(r);
  std::vector<double> tops(r.copies.size() / size + 1, -INFINITY);
  double top = -INFINITY;
  size_t at = 0;
  for (size_t i = 0; i < r.copies.size(); ++i) {
    if (r.copies[i] != 1) continue;
    tops[i / size] = std::max(tops[i / size], scores[at++]);
    top = std::max(top, tops[i / size]);
  }
  r.bias.assign(r.copies.size(), 0);
  for (size_t i = 0; i < r.copies.size(); ++i) {
    if (r.copies[i] == 1) r.bias[i] = top - tops[i / size];
  }
  r.lse_open = true;
}

void split_hypotheses(uint32_t size, uint32_t longest, std::vector<Hypothesis>& out) {
  for (uint32_t split = 0; split * size < longest && split < 8; ++split) {
    out.push_back({"split-dropped:" + std::to_string(size) + ":" + std::to_string(split),
                   "keys " + std::to_string(split * size) + " to " +
                       std::to_string((split + 1) * size - 1) + " are left out (a lost split)",
                   [size, split](const Scene&, const RowAt&, Reading& r) {
                     for (size_t i = split * size; i < (split + 1) * size && i < r.copies.size();
                          ++i) {
                       r.copies[i] = 0;
                     }
                   }});
  }
  out.push_back({"splits-unrescaled:" + std::to_string(size),
                 "splits of " + std::to_string(size) + " keys are added each under its own maximum",
                 [size](const Scene& s, const RowAt&, Reading& r) { unrescale(s, size, r); }});
  out.push_back({"splits-unweighted:" + std::to_string(size),
                 "splits of " + std::to_string(size) + " keys are merged without their weights",
                 [size](const Scene& s, const RowAt&, Reading& r) {
                   const std::vector<double> scores = s.scores(r);
                   double top = -INFINITY;
                   for (const double x : scores) top = std::max(top, x);
                   std::vector<double> sums(r.copies.size() / size + 1, 0);
                   size_t at = 0;
                   for (size_t i = 0; i < r.copies.size(); ++i) {
                     if (r.copies[i] == 1)
                       sums[i / size] += reference::exp_nonpositive(scores[at++] - top);
                   }
                   r.bias.assign(r.copies.size(), 0);
                   for (size_t i = 0; i < r.copies.size(); ++i) {
                     if (r.copies[i] == 1) r.bias[i] = minus_log(sums[i / size]);
                   }
                   r.lse_open = true;
                 }});
}

}  // namespace

std::vector<uint32_t> split_sizes(const Scene& scene) {
  std::vector<uint32_t> sizes = {16, 32, 64, 128};
  const uint32_t own = scene.c().exec.split_slots;
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), own);
  if (own > 0 && (at == sizes.end() || *at != own)) sizes.insert(at, own);
  return sizes;
}

void number_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  scale_hypotheses(out);
  lse_hypotheses(out);
  uint32_t longest = 0;
  for (const PlannedRow& row : scene.step().rows) longest = std::max(longest, row.kv_length);
  for (const uint32_t tile : split_sizes(scene)) {
    if (tile >= longest) break;
    for (uint32_t t = 1; t * tile < longest && t < 8; ++t) out.push_back(missing_rescale(tile, t));
    split_hypotheses(tile, longest, out);
  }
}

std::vector<Hypothesis> hypotheses(const Scene& scene) {
  std::vector<Hypothesis> out;
  mask_hypotheses(scene, out);
  place_hypotheses(scene, out);
  number_hypotheses(scene, out);
  head_input_hypotheses(scene, out);
  format_hypotheses(scene, out);
  return out;
}

}  // namespace kv
