// Hypotheses about the arithmetic of a score: scale, softcap, dimensions, thresholds, rounding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;

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

// As if the row held fewer dimensions: a tail of a loop that is never reached.
void dimension_hypotheses(const Shape& shape, std::vector<Hypothesis>& out) {
  constexpr uint32_t kStep = 8, kStepsMax = 16;
  for (uint32_t steps = 1; steps <= kStepsMax; ++steps) {
    const uint32_t dims = steps * kStep;
    if (dims <= shape.head_dim_k) {
      out.push_back(
          {fmt::format("score-dims-dropped:{}", dims),
           fmt::format("scores leave out the last {} dimensions of Q and K", dims),
           [dims](const Scene&, const RowAt&, Reading& r) { r.key_dims_dropped = dims; }});
    }
    if (dims <= shape.head_dim_v) {
      out.push_back(
          {fmt::format("value-dims-dropped:{}", dims),
           fmt::format("the last {} dimensions of the output are left at 0", dims),
           [dims](const Scene&, const RowAt&, Reading& r) { r.value_dims_dropped = dims; }});
    }
  }
}

void latent_hypotheses(const Shape& shape, std::vector<Hypothesis>& out) {
  if (!shape.value_in_key || shape.head_dim_k == shape.head_dim_v) return;
  out.push_back({"latent-value-last",
                 "V is taken from the end of a row of K, where its rotated part lies",
                 [](const Scene& s, const RowAt&, Reading& r) {
                   r.latent_value_at = s.c().shape.head_dim_k - s.c().shape.head_dim_v;
                 }});
}

// Visible slots whose dot product, times `factor`, lies below 2^-bits have the score 0.
void drop_small_scores(const Scene& s, int bits, double factor, Reading& r) {
  const std::vector<double> dots = s.dots(r);
  const double threshold = std::ldexp(1.0, -bits);
  r.bias.assign(r.copies.size(), 0);
  size_t at = 0;
  for (size_t i = 0; i < r.copies.size(); ++i) {
    if (r.copies[i] != 1) continue;
    const double dot = dots[at++];
    if (std::fabs(dot * factor) < threshold) r.bias[i] = -dot * r.scale;
  }
  const auto nothing = [](double x) { return x == 0; };
  if (std::all_of(r.bias.begin(), r.bias.end(), nothing)) r.bias.clear();
}

void threshold_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  constexpr int kBitsMax = 20;
  if (scene.c().shape.softcap > 0) return;
  for (int bits = 0; bits <= kBitsMax; ++bits) {
    const std::string size = fmt::format("2^-{}", bits);
    out.push_back(of_family(
        "small-dots-zero", size, "dot products below {} in magnitude are taken for 0",
        [bits](const Scene& s, const RowAt&, Reading& r) { drop_small_scores(s, bits, 1, r); }));
    out.push_back(of_family("small-scores-zero", size,
                            "scaled scores below {} in magnitude are taken for 0",
                            [bits](const Scene& s, const RowAt&, Reading& r) {
                              drop_small_scores(s, bits, r.scale, r);
                            }));
  }
}

// A wider interval than the declaration gives: P is rounded where it is said to be fp32.
void rounding_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  constexpr uint32_t kFloatCode = 2, kBfloatCode = 4;
  if (scene.declared().tile_slots == 0) return;  // nothing was declared
  for (const bool bfloat : {false, true}) {
    DeclaredProfile other = scene.declared();
    other.probability_code = bfloat ? kBfloatCode : kFloatCode;
    other.probability_bits = 16;
    if (other == scene.declared()) continue;
    const std::string type = bfloat ? "bf16" : "f16";
    out.push_back({"probability-rounded:" + type,
                   "P is rounded to " + type + ", which is not what the plugin declares",
                   [other](const Scene&, const RowAt&, Reading& r) { r.arithmetic = other; }});
  }
}

}  // namespace

void number_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  scale_hypotheses(out);
  dimension_hypotheses(scene.c().shape, out);
  latent_hypotheses(scene.c().shape, out);
  threshold_hypotheses(scene, out);
  rounding_hypotheses(scene, out);
}

}  // namespace kv
