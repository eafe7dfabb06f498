#include "harness/cli/history_examine.h"

#include <algorithm>

#include "harness/core/json_fields.h"
#include "harness/history/explain.h"

namespace kv::cli {
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

Divergence divergence_of(const HistoryFinding& f, const nlohmann::ordered_json& told) {
  Divergence d{.op_index = f.op_index};
  if (f.request) d.request = f.request->value;
  if (f.slot) d.query_slot = static_cast<int64_t>(*f.slot);
  if (f.layer) d.layer = *f.layer;
  if (f.check == CheckClass::kProvenance) d.tensor = "cache";
  if (told.is_null()) return d;
  d.batch_slot = told.at("batch_slot").get<int64_t>();
  d.kv_length = told.at("length").get<uint64_t>();
  d.position_offset = told.at("position_offset").get<int64_t>();
  d.cache_bytes_allocated = told.at("cache_bytes").at("allocated").get<uint64_t>();
  d.cache_bytes_live = told.at("cache_bytes").at("live").get<uint64_t>();
  for (const auto& page : told.at("block_table")) {
    if (page.get<int32_t>() >= 0) d.block_table.push_back(page.get<uint32_t>());
  }
  return d;
}

}  // namespace

std::string history_failure_class(const HistoryFinding& finding) {
  if (finding.check == CheckClass::kEcho && !finding.twin.empty()) return "twin:" + finding.twin;
  std::string name(check_name(finding.check));
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
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
  if (!result.finding) return examined;
  const HistoryFinding& f = *result.finding;
  v.outcome = Outcome::kFail;
  v.stage = stage_of(f.check);
  v.failure_class = history_failure_class(f);
  v.message = f.message;
  if (exam.record) {
    examined.details = finding_json(c, f, result.records);
    examined.story = explain_history(c, f, result.records);
    examined.trace = json_text(chrome_trace(c, result.records)) + "\n";
  }
  v.divergence = divergence_of(f, examined.details);
  return examined;
}

}  // namespace kv::cli
