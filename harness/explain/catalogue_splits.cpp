// Hypotheses about the merge of partial results: of tiles in one accumulator, of splits, of warps.
#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr uint32_t kPartsMax = 8;  // tiles or splits of which each is suspected

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

/// How slots are dealt to what is merged in the end: in splits of `size`, or tile by tile to
/// `ways` warps in turn.
struct Parts {
  uint32_t size = 0, ways = 0;
  size_t of(size_t slot) const { return ways == 0 ? slot / size : slot / size % ways; }
  size_t count(size_t slots) const { return ways == 0 ? slots / size + 1 : ways; }
  std::string name() const {
    return std::to_string(size) + (ways == 0 ? "" : "x" + std::to_string(ways));
  }
};

struct PartState {
  double top = -INFINITY, sum = 0;  // of exp(score - top)
};

/// What each part has seen; slots that are not seen once are left out.
std::vector<PartState> states_of(const Scene& s, const Parts& parts, const Reading& r) {
  const std::vector<double> scores = s.scores(r);
  std::vector<PartState> states(parts.count(r.copies.size()));
  for (const bool summing : {false, true}) {
    size_t at = 0;
    for (size_t i = 0; i < r.copies.size(); ++i) {
      if (r.copies[i] != 1) continue;
      PartState& state = states[parts.of(i)];
      const double score = scores[at++];
      if (summing) state.sum += reference::exp_nonpositive(score - state.top);
      if (!summing) state.top = std::max(state.top, score);
    }
  }
  return states;
}

double top_of(const std::vector<PartState>& states) {
  double top = -INFINITY;
  for (const PartState& state : states) top = std::max(top, state.top);
  return top;
}

/// Weights of each part are multiplied by the exponential of `raise(state)`.
template <class Raise>
void raise_parts(const Parts& parts, const std::vector<PartState>& states, Raise raise,
                 Reading& r) {
  r.bias.assign(r.copies.size(), 0);
  for (size_t i = 0; i < r.copies.size(); ++i) {
    if (r.copies[i] == 1) r.bias[i] = raise(states[parts.of(i)]);
  }
  r.lse_open = true;
}

void merge_hypotheses(const Parts& parts, std::vector<Hypothesis>& out) {
  out.push_back(of_family(
      "splits-unrescaled", parts.name(), "splits of {} keys are added each under its own maximum",
      [parts](const Scene& s, const RowAt&, Reading& r) {
        const std::vector<PartState> states = states_of(s, parts, r);
        const double top = top_of(states);
        raise_parts(
            parts, states, [top](const PartState& state) { return top - state.top; }, r);
      }));
  out.push_back(of_family(
      "splits-unweighted", parts.name(), "splits of {} keys are merged without their weights",
      [parts](const Scene& s, const RowAt&, Reading& r) {
        const std::vector<PartState> states = states_of(s, parts, r);
        const double top = top_of(states);
        raise_parts(
            parts, states,
            [top](const PartState& state) { return top - state.top - log_of(state.sum); }, r);
      }));
  // What the sum has too much is a key that weighs as much, of zeros.
  out.push_back(of_family(
      "split-sums-unrescaled", parts.name(),
      "the sums of splits of {} keys are added each under its own maximum, their outputs rightly",
      [parts](const Scene& s, const RowAt&, Reading& r) {
        const std::vector<PartState> states = states_of(s, parts, r);
        const double top = top_of(states);
        double extra = 0;
        for (const PartState& state : states) {
          if (state.sum == 0) continue;
          extra += state.sum * (1 - reference::exp_nonpositive(state.top - top));
        }
        if (extra > 0) r.zero_keys.push_back({r.copies.size(), top + log_of(extra)});
      }));
}

void hide(Reading& r, size_t first, size_t end) {
  for (size_t i = first; i < std::min(end, r.copies.size()); ++i) r.copies[i] = 0;
}

void lost_splits(uint32_t size, uint32_t longest, std::vector<Hypothesis>& out) {
  for (uint32_t split = 0; split * size < longest && split < kPartsMax; ++split) {
    out.push_back({"split-dropped:" + std::to_string(size) + ":" + std::to_string(split),
                   "keys " + std::to_string(split * size) + " to " +
                       std::to_string((split + 1) * size - 1) + " are left out (a lost split)",
                   [size, split](const Scene&, const RowAt&, Reading& r) {
                     hide(r, split * size, (split + 1) * size);
                   }});
  }
  out.push_back(of_family("partial-split-dropped", std::to_string(size),
                          "the last split, where it has not all of its {} keys, is left out",
                          [size](const Scene& s, const RowAt& at, Reading& r) {
                            const uint32_t length = s.step().rows[at.row].kv_length;
                            if (length > size) hide(r, length / size * size, length);
                          }));
}

}  // namespace

void split_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  constexpr Parts kWarps[] = {{32, 4}, {32, 8}, {16, 4}, {64, 4}};
  uint32_t longest = 0;
  for (const PlannedRow& row : scene.step().rows) longest = std::max(longest, row.kv_length);
  for (const uint32_t size : split_sizes(scene)) {
    if (size >= longest) continue;
    for (uint32_t t = 1; t * size < longest && t < kPartsMax; ++t) {
      out.push_back(missing_rescale(size, t));
    }
    lost_splits(size, longest, out);
    merge_hypotheses({size, 0}, out);
  }
  for (const Parts& warps : kWarps) {
    if (warps.size < longest) merge_hypotheses(warps, out);
  }
}

}  // namespace kv
