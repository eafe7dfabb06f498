// Hypotheses about the LSE beside an output that is right: its base, its layout, what it is made
// of.
#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;

void base_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back({"lse-base-2", "the LSE is in base 2 where base e is declared",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = kLog2e; }});
  out.push_back({"lse-base-e", "the LSE is in base e where base 2 is declared",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = 1 / kLog2e; }});
  out.push_back({"lse-negated", "the LSE has the wrong sign",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_factor = -1; }});
  out.push_back({"lse-wrong-only", "O is right and the LSE is wrong in a way that is not known",
                 [](const Scene&, const RowAt&, Reading& r) { r.lse_open = true; }});
}

double maximum_of(const std::vector<double>& scores) {
  return *std::max_element(scores.begin(), scores.end());
}

void content_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back({"lse-without-maximum", "the LSE is the logarithm of the sum, without the maximum",
                 [](const Scene& s, const RowAt&, Reading& r) {
                   const std::vector<double> scores = s.scores(r);
                   if (!scores.empty()) r.lse_shift = -maximum_of(scores);
                 }});
  out.push_back({"lse-is-maximum", "the LSE is the maximum, without the logarithm of the sum",
                 [](const Scene& s, const RowAt&, Reading& r) {
                   const std::vector<double> scores = s.scores(r);
                   if (scores.empty()) return;
                   const double top = std::max(maximum_of(scores), r.sink.value_or(-INFINITY));
                   double sum = r.sink ? reference::exp_nonpositive(*r.sink - top) : 0;
                   for (const double score : scores) sum += reference::exp_nonpositive(score - top);
                   r.lse_shift = -log_of(sum);
                 }});
  if (!scene.c().shape.sinks) return;
  out.push_back({"lse-without-sink", "the LSE leaves the sink out, the output does not",
                 [](const Scene&, const RowAt&, Reading& r) {
                   Reading without = r;
                   without.sink.reset();
                   r.lse_as = std::make_shared<const Reading>(std::move(without));
                 }});
}

void empty_row_hypotheses(std::vector<Hypothesis>& out) {
  constexpr struct {
    const char *name, *what;
    EmptyLse lse;
  } kinds[] = {{"zero", "0", EmptyLse::kZero},
               {"plus-infinity", "+inf", EmptyLse::kPlusInfinity},
               {"nan", "NaN", EmptyLse::kNan},
               {"finite-minimum", "the lowest finite number", EmptyLse::kFiniteMinimum}};
  for (const auto& kind : kinds) {
    out.push_back(
        {std::string("empty-row-lse-") + kind.name,
         std::string("the LSE of a row that sees nothing is ") + kind.what + " and not -inf",
         [lse = kind.lse](const Scene&, const RowAt&, Reading& r) { r.empty_lse = lse; }});
  }
}

// The LSE of the row and head that another layout has at this place; of the same layer.
void take_lse_of(const Scene& s, const RowAt& at, uint64_t token, uint64_t head, Reading& r) {
  RowAt other = s.row_of_token(token, at);
  other.head = static_cast<uint32_t>(head);
  if (other == at) return;
  r.lse_as = std::make_shared<const Reading>(s.honest(other));
}

// Written [heads, tokens] where [tokens, heads] is declared, or the other way round.
void exchange_layout(const Scene& s, const RowAt& at, Reading& r) {
  const uint64_t tokens = s.tokens(), heads = s.c().shape.query_heads;
  if (s.lse_is_head_major()) {
    const uint64_t index = at.head * tokens + s.token(at);
    take_lse_of(s, at, index / heads, index % heads, r);
  } else {
    const uint64_t index = s.token(at) * heads + at.head;
    take_lse_of(s, at, index % tokens, index / tokens, r);
  }
}

// Written with the strides of tokens and heads exchanged: places that nobody or several write.
void exchange_strides(const Scene& s, const RowAt& at, Reading& r) {
  const uint64_t tokens = s.tokens(), heads = s.c().shape.query_heads;
  const bool head_major = s.lse_is_head_major();
  const uint64_t token_stride = head_major ? 1 : heads, head_stride = head_major ? tokens : 1;
  const uint64_t index = s.token(at) * token_stride + at.head * head_stride;
  uint64_t writers = 0, token = 0, head = 0;
  for (uint64_t t = 0; t < tokens; ++t) {
    for (uint64_t h = 0; h < heads; ++h) {
      if (t * head_stride + h * token_stride != index) continue;
      ++writers;
      token = t;
      head = h;
    }
  }
  if (writers != 1) {
    r.lse_open = true;
  } else {
    take_lse_of(s, at, token, head, r);
  }
}

void layout_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  if (scene.has_padded_layout() || scene.c().shape.query_heads == 1) return;
  out.push_back({"lse-other-layout",
                 scene.lse_is_head_major()
                     ? "the LSE is laid out [tokens][heads] where [heads][tokens] is declared"
                     : "the LSE is laid out [heads][tokens] where [tokens][heads] is declared",
                 exchange_layout});
  out.push_back({"lse-strides-exchanged",
                 "the LSE is written with the strides of tokens and heads exchanged",
                 exchange_strides});
}

}  // namespace

void lse_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  base_hypotheses(out);
  content_hypotheses(scene, out);
  empty_row_hypotheses(out);
  layout_hypotheses(scene, out);
}

}  // namespace kv
