#include "harness/cli/html_findings.h"

#include <algorithm>

#include "harness/certify/examine.h"
#include "harness/certify/history_bench.h"
#include "harness/cli/history_pictures.h"
#include "harness/explain/catalogue.h"
#include "harness/explain/explain.h"

namespace kv::cli {
namespace {

constexpr uint32_t kFurtherCases = 4;       // to tell hypotheses apart
constexpr uint64_t kExplainedSlots = 4096;  // longest request whose fault is looked for

/// The named hypothesis' reading of the query rows that are drawn.
KernelMask kernel_mask(const Case& c, const Observation& seen, const Divergence& d,
                       const std::string& hypothesis) {
  const Scene scene(c, seen, d.op_index);
  const std::vector<Hypothesis> all = hypotheses(scene);
  const auto named = std::find_if(all.begin(), all.end(),
                                  [&](const Hypothesis& h) { return h.name == hypothesis; });
  const std::optional<Moment> moment =
      moment_of(c, Verdict{.divergence = Divergence{.op_index = d.op_index,
                                                    .request = d.request,
                                                    .head = d.head,
                                                    .query_slot = d.query_slot}});
  if (named == all.end() || !moment || moment->row == nullptr) return {};
  const auto [begin, end] = drawn_queries(*moment);
  KernelMask mask{.first_query = begin};
  for (uint32_t q = begin; q < end; ++q) {
    const RowAt at{moment->row->batch_slot, q, static_cast<uint32_t>(d.layer),
                   static_cast<uint32_t>(d.head)};
    Reading reading = scene.honest(at);
    named->change(scene, at, reading);
    mask.copies.push_back(std::move(reading.copies));
  }
  return mask;
}

}  // namespace

Result<HtmlFinding> html_finding(const BenchOptions& bench, const Record& record) {
  HtmlFinding shown{.record = record};
  if (record.c.engine) {
    HistoryBench histories(bench);
    KV_ASSIGN_OR_RETURN(const HistoryResult result,
                        histories.run(record.c, {.value_steps = 1, .record = true}));
    shown.pictures = history_pictures(result);
    return shown;
  }
  const Verdict& v = record.verdict;
  if (record.history || v.outcome != Outcome::kFail || !v.divergence || v.divergence->head < 0)
    return shown;
  const Divergence& d = *v.divergence;
  KV_ASSIGN_OR_RETURN(const Observation seen, observe_once(bench, record.c));
  shown.errors = error_map(record.c, seen, d);
  if (d.kv_length > kExplainedSlots) return shown;
  const Observe observe = [&](const Case& one) { return observe_once(bench, one); };
  const auto explained = kv::explain(record.c, observe, {.cases_max = kFurtherCases});
  if (!explained.ok() || !explained->numeric) return shown;
  shown.explanation = explained->sentence;
  if (!explained->remain.empty())
    shown.kernel = kernel_mask(record.c, seen, d, explained->remain.front().name);
  return shown;
}

Result<std::vector<HtmlFinding>> html_findings(const BenchOptions& bench,
                                               std::span<const Record> records) {
  std::vector<HtmlFinding> shown;
  for (const Record& record : records) {
    if (shown.size() < kHtmlFindingsMax) {
      KV_ASSIGN_OR_RETURN(HtmlFinding finding, html_finding(bench, record));
      shown.push_back(std::move(finding));
    } else {
      shown.push_back({.record = record});  // counted, not drawn
    }
  }
  return shown;
}

}  // namespace kv::cli
