#include "harness/certify/history_examine.h"

#include "harness/core/json_fields.h"
#include "harness/history/explain.h"
#include "harness/simt/control/finding_names.h"

namespace kv {
namespace {

Stage stage_of(CheckClass check) {
  switch (check) {
    case CheckClass::kDevice:
      return Stage::kDevice;
    case CheckClass::kSnapshot:
    case CheckClass::kAnswer:
    case CheckClass::kAtomicity:
    case CheckClass::kProgress:
      return Stage::kContract;
    case CheckClass::kProvenance:
      return Stage::kProvenance;
    case CheckClass::kValues:
      return Stage::kInterval;
    case CheckClass::kEcho:
      return Stage::kMetamorphic;
    default:
      return Stage::kStructure;
  }
}

Divergence divergence_of(const HistoryFinding& f, const FindingPlace& place) {
  Divergence d{.op_index = f.op_index};
  if (f.request) d.request = f.request->value;
  if (f.slot) d.query_slot = static_cast<int64_t>(*f.slot);
  if (f.layer) d.layer = *f.layer;
  if (f.check == CheckClass::kProvenance) d.tensor = "cache";
  d.batch_slot = place.batch_slot;
  d.kv_length = place.length;
  d.position_offset = place.position_offset;
  d.cache_bytes_allocated = place.bytes_allocated;
  d.cache_bytes_live = place.bytes_live;
  for (const int32_t page : place.block_table) {
    if (page >= 0) d.block_table.push_back(static_cast<uint32_t>(page));
  }
  return d;
}

}  // namespace

std::string history_failure_class(const HistoryFinding& finding) {
  if (finding.check == CheckClass::kEcho && !finding.twin.empty()) return "twin:" + finding.twin;
  return dashed(std::string(check_name(finding.check)));
}

Result<Examined> examine_history(HistoryBench& bench, const Case& c, const HistoryExam& exam) {
  Examined examined{.c = c};
  Verdict& v = examined.verdict;
  const Result<HistoryResult> ran =
      bench.run(c, {.value_steps = exam.value_steps, .record = exam.record});
  if (!ran.ok() && ran.error().kind != ErrorKind::kUnsupported) return ran.error();
  if (!ran.ok()) {
    v.outcome = Outcome::kUnsupported;
    v.message = ran.error().message;
    return examined;
  }
  const HistoryResult& result = *ran;
  examined.history = result.stats;
  v.stats.rows_judged = result.stats.values.rows;
  v.stats.elements_judged = result.stats.values.elements;
  v.stats.slots_judged = result.stats.slots_read;
  if (!result.finding) {
    if (result.stats.steps == 0 && result.stats.not_offered > 0) {
      v.outcome = Outcome::kUnsupported;
      v.message = "the engine offers no step of this history";
    }
    return examined;
  }
  const HistoryFinding& f = *result.finding;
  if (f.check == CheckClass::kUnsupported) {
    v.outcome = Outcome::kUnsupported;
    v.message = f.message;
    return examined;
  }
  v.outcome = Outcome::kFail;
  v.stage = stage_of(f.check);
  v.failure_class = history_failure_class(f);
  v.message = f.message;
  const FindingPlace place = place_of(c, f, result.records);
  v.divergence = divergence_of(f, place);
  if (exam.record) {
    examined.details = finding_json(c, f, place);
    examined.story = explain_history(c, f, place);
    examined.trace = json_text(chrome_trace(c, result.records)) + "\n";
  }
  return examined;
}

}  // namespace kv
