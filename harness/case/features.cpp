#include "harness/case/features.h"

#include <algorithm>
#include <vector>

#include "harness/case/mask_bits.h"
#include "harness/case/visibility.h"

namespace kv {
namespace feature_rows {
namespace {

bool some_head_sees_nothing(const RowMet& m, uint32_t query) {
  if (m.c.mask.encoding == MaskEncoding::kNone && m.plan.tree_parents.empty()) {
    return visible_range(m.c.mask, m.plan, query).size() == 0;
  }
  for (uint32_t head = 0; head < mask_heads(m.c); ++head) {
    if (sees_nothing(m.c, m.sequence, m.plan, {query, head})) return true;
  }
  return false;
}

}  // namespace

bool stands_at_pad(const QueryMet& met) {
  const int64_t slot = query_slot(met.row.plan, met.query);
  return slot >= 0 && met.row.sequence.slots[static_cast<size_t>(slot)].pad;
}

bool sees_no_key(const QueryMet& met) {
  return !stands_at_pad(met) && some_head_sees_nothing(met.row, met.query);
}

bool branches(const RowMet& met) {
  const auto& parents = met.row.tree_parents;
  bool branches = false;
  for (size_t i = 1; i < parents.size(); ++i) branches |= parents[i] != static_cast<int32_t>(i) - 1;
  return branches && met.plan.queries > 0;
}

bool has_pages_out_of_order(const RowMet& met) {
  const auto& pages = met.sequence.pages;
  return std::adjacent_find(pages.begin(), pages.end(), [](PageId a, PageId b) {
           return b.value != a.value + 1;
         }) != pages.end();
}

bool mixes_decode_and_prefill(const StepMet& met) {
  bool decode = false, prefill = false;
  for (size_t r = 0; r < met.step.rows.size(); ++r) {
    decode = decode || is_decode(met.step.rows[r], met.plan.rows[r]);
    prefill = prefill || is_prefill(met.step.rows[r]);
  }
  return decode && prefill;
}

bool has_ragged_queries(const StepMet& met) {
  const auto& rows = met.plan.rows;
  return std::any_of(rows.begin(), rows.end(),
                     [&](const PlannedRow& row) { return row.queries != rows[0].queries; });
}

bool has_mask_by_head(const Case& c) { return mask_heads(c) > 1; }

}  // namespace feature_rows

namespace {

/// Places in the table of the features that one kind of question decides.
template <auto question>
constexpr auto kAnsweredBy = [] {
  constexpr auto is_asked = [](const FeatureRow& row) { return row.*question != nullptr; };
  constexpr size_t n = static_cast<size_t>(std::count_if(
      feature_rows::kFeatureRows.begin(), feature_rows::kFeatureRows.end(), is_asked));
  std::array<size_t, n> places{};
  size_t used = 0;
  for (size_t i = 0; i < kFeatureCount; ++i)
    if (is_asked(feature_rows::kFeatureRows[i])) places[used++] = i;
  return places;
}();

static_assert(kAnsweredBy<&FeatureRow::of_case>.size() +
                      kAnsweredBy<&FeatureRow::of_operation>.size() +
                      kAnsweredBy<&FeatureRow::of_step>.size() +
                      kAnsweredBy<&FeatureRow::of_row>.size() +
                      kAnsweredBy<&FeatureRow::of_query>.size() ==
                  kFeatureCount,
              "a feature needs exactly one definition");

template <auto question, class Met>
void count(const Met& of, FeatureSet& met) {
  for (const size_t i : kAnsweredBy<question>)
    met.count[i] += (feature_rows::kFeatureRows[i].*question)(of);
}

class Counter {
 public:
  explicit Counter(const Case& c) : case_(c), released_(c.pool.page_count) {}

  void run(Timeline timeline, FeatureSet& met) {
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      const Op& op = case_.ops[i];
      count<&FeatureRow::of_operation>(op, met);
      if (const auto* cancel = std::get_if<op::Cancel>(&op))
        remember(timeline.sequence(cancel->request));
      if (const auto* finish = std::get_if<op::Finish>(&op))
        remember(timeline.sequence(finish->request));
      const PlannedStep plan = timeline.apply(i);
      if (const auto* step = std::get_if<op::Step>(&op)) count_step(*step, plan, timeline, met);
    }
  }

 private:
  void remember(const Sequence& sequence) {
    for (const PageId page : sequence.pages) released_[page.value] = true;
  }

  void count_step(const op::Step& step, const PlannedStep& plan, const Timeline& timeline,
                  FeatureSet& met) {
    for (size_t r = 0; r < step.rows.size(); ++r) {
      const Sequence& sequence = timeline.sequence(plan.rows[r].request);
      const auto& pages = sequence.pages;
      const bool reuses =
          std::any_of(pages.begin(), pages.end(), [&](PageId p) { return released_[p.value]; });
      const RowMet row{case_, step.rows[r], plan.rows[r], sequence, reuses};
      count<&FeatureRow::of_row>(row, met);
      for (uint32_t q = 0; q < row.plan.queries; ++q)
        count<&FeatureRow::of_query>(QueryMet{row, q}, met);
    }
    count<&FeatureRow::of_step>(StepMet{step, plan, timeline.free_pages().empty()}, met);
  }

  const Case& case_;
  std::vector<bool> released_;
};

}  // namespace

FeatureSet features_of(const Case& c) {
  FeatureSet met;
  count<&FeatureRow::of_case>(c, met);
  Result<Timeline> timeline = Timeline::create(c);
  if (timeline.ok()) Counter(c).run(std::move(timeline).value(), met);
  return met;
}

}  // namespace kv
