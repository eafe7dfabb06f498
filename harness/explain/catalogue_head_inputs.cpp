// Hypotheses about what a head brings along: its ALiBi slope and its sink.
#include <algorithm>

#include "harness/case/head_inputs.h"
#include "harness/explain/catalogue.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr uint32_t kCopiesMax = 16;

// The place of the query head `by` further on, around the end.
HeadPlace neighbour(const Scene& scene, const RowAt& at, uint32_t by) {
  return {at.layer, (at.head + by) % scene.c().shape.query_heads};
}

/// The query head whose number is that of this head's KV head.
HeadPlace like_kv_head(const Scene& scene, const RowAt& at) {
  const Shape& s = scene.c().shape;
  return {at.layer, at.head / (s.query_heads / s.kv_heads)};
}

/// A bias that keys after the anchor get as a bonus.
void turn_sign_after_anchor(const Scene&, const RowAt&, Reading& r) {
  const auto first = static_cast<size_t>(std::max<int64_t>(r.alibi_anchor + 1, 0));
  if (first >= r.copies.size() || r.alibi_slope == 0) return;
  r.bias.assign(r.copies.size(), 0);
  for (size_t i = first; i < r.copies.size(); ++i) {
    const auto distance = static_cast<double>(static_cast<int64_t>(i) - r.alibi_anchor);
    r.bias[i] = 2 * r.alibi_slope * distance;
  }
}

void add_to_sink(Reading& r, double logit) {
  if (r.sink) *r.sink += logit;
}

void alibi_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back({"alibi-missing", "the ALiBi bias is left out",
                 [](const Scene&, const RowAt&, Reading& r) { r.alibi_slope = 0; }});
  out.push_back({"alibi-negated", "the ALiBi bias grows with the distance",
                 [](const Scene&, const RowAt&, Reading& r) { r.alibi_slope = -r.alibi_slope; }});
  out.push_back({"alibi-scaled", "the ALiBi bias is multiplied by the scale",
                 [](const Scene&, const RowAt&, Reading& r) { r.alibi_slope *= r.scale; }});
  out.push_back({"alibi-from-row", "ALiBi distances are measured from the row's place in the step",
                 [](const Scene&, const RowAt& at, Reading& r) { r.alibi_anchor = at.query; }});
  out.push_back({"alibi-signed", "keys after the query get the ALiBi bias as a bonus",
                 turn_sign_after_anchor});
  out.push_back({"alibi-head-zero", "every head has the ALiBi slope of head 0",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.alibi_slope = alibi_slope(s.c(), {at.layer, 0});
                 }});
  out.push_back({"alibi-of-kv-head", "the ALiBi slope is looked up by the number of the KV head",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.alibi_slope = alibi_slope(s.c(), like_kv_head(s, at));
                 }});
  for (const int by : {1, -1}) {
    out.push_back(
        {by > 0 ? "alibi-anchor-plus-one" : "alibi-anchor-minus-one",
         std::string("ALiBi distances are measured from one slot too ") + (by > 0 ? "far" : "near"),
         [by](const Scene&, const RowAt&, Reading& r) { r.alibi_anchor += by; }});
  }
  const uint32_t heads = scene.c().shape.query_heads;
  for (const bool next : {true, false}) {
    out.push_back({next ? "alibi-head-plus-one" : "alibi-head-minus-one",
                   std::string("every head has the ALiBi slope of the ") +
                       (next ? "next" : "previous") + " head",
                   [by = next ? 1 : heads - 1](const Scene& s, const RowAt& at, Reading& r) {
                     r.alibi_slope = alibi_slope(s.c(), neighbour(s, at, by));
                   }});
  }
}

/// Splits of the row's slots, or those of them of which it sees something.
uint32_t splits_of(const Scene& s, const RowAt& at, uint32_t size, bool seen, const Reading& r) {
  const uint32_t length = s.step().rows[at.row].kv_length;
  if (!seen) return (length + size - 1) / size;
  uint32_t splits = 0;
  for (uint32_t first = 0; first < length; first += size) {
    const auto begin = r.copies.begin() + first;
    const auto end = r.copies.begin() + std::min(first + size, length);
    splits += std::any_of(begin, end, [](uint32_t copies) { return copies > 0; });
  }
  return splits;
}

void add_sinks_of_splits(uint32_t size, std::vector<Hypothesis>& out) {
  for (const bool once_more : {false, true}) {
    for (const bool seen : {false, true}) {
      out.push_back(of_family(
          once_more ? "sink-per-split-and-row" : "sink-per-split", std::to_string(size),
          std::string("the sink is counted once in each split of {} keys") +
              (once_more ? ", and once more for the row" : ""),
          [=](const Scene& s, const RowAt& at, Reading& r) {
            const uint32_t splits = splits_of(s, at, size, seen, r);
            const bool divided = splits_of(s, at, size, false, r) > 1;
            if (divided && splits + once_more > 1)
              add_to_sink(r, reference::log_at_least_one(splits + once_more));
          },
          seen ? "seen" : ""));
    }
  }
}

void sink_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back({"sink-missing", "the sink is left out",
                 [](const Scene&, const RowAt&, Reading& r) { r.sink.reset(); }});
  out.push_back({"sink-scaled", "the sink is multiplied by the scale",
                 [](const Scene&, const RowAt&, Reading& r) {
                   if (r.sink) *r.sink *= r.scale;
                 }});
  out.push_back({"sink-head-zero", "every head has the sink of head 0",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.sink = sink_logit(s.c(), {at.layer, 0});
                 }});
  out.push_back({"sink-of-kv-head", "the sink is looked up by the number of the KV head",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.sink = sink_logit(s.c(), like_kv_head(s, at));
                 }});
  const uint32_t heads = scene.c().shape.query_heads;
  for (const bool next : {true, false}) {
    out.push_back(
        {next ? "sink-head-plus-one" : "sink-head-minus-one",
         std::string("every head has the sink of the ") + (next ? "next" : "previous") + " head",
         [by = next ? 1 : heads - 1](const Scene& s, const RowAt& at, Reading& r) {
           r.sink = sink_logit(s.c(), neighbour(s, at, by));
         }});
  }
  for (uint32_t copies = 2; copies <= kCopiesMax; ++copies) {
    const std::string times = std::to_string(copies);
    out.push_back({"sink-times:" + times, "the sink is counted " + times + " times",
                   [copies](const Scene&, const RowAt&, Reading& r) {
                     add_to_sink(r, reference::log_at_least_one(copies));
                   }});
  }
  for (const uint32_t size : split_sizes(scene)) add_sinks_of_splits(size, out);
}

}  // namespace

void head_input_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  if (scene.c().shape.alibi) alibi_hypotheses(scene, out);
  if (scene.c().shape.sinks) sink_hypotheses(scene, out);
}

}  // namespace kv
