#include <cmath>

#include "harness/case/names.h"
#include "harness/judge/device_stage.h"
#include "harness/report/record.h"
#include "harness/report/words.h"

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

Json divergence_json(const Divergence& d) {
  Json json;
  json["op_index"] = d.op_index;
  const std::pair<const char*, int64_t> indices[] = {
      {"request", d.request}, {"batch_slot", d.batch_slot}, {"layer", d.layer},
      {"head", d.head},       {"query_slot", d.query_slot}, {"dimension", d.dimension}};
  for (const auto& [name, value] : indices) json[name] = value;
  json["tensor"] = d.tensor;
  json["want"] = number(d.want);
  json["got"] = number(d.got);
  json["want_bits"] = d.want_bits;
  json["got_bits"] = d.got_bits;
  json["admissible"] = {number(d.admissible_low), number(d.admissible_high)};
  json["bound"] = number(d.bound);
  json["profile"] = d.profile;
  json["budget"] = Json::array();
  for (const BudgetLine& line : d.budget)
    json["budget"].push_back(
        {{"name", line.name}, {"value", number(line.value)}, {"share", number(line.share)}});
  json["kv_length"] = d.kv_length;
  json["position_offset"] = d.position_offset;
  json["block_table"] = d.block_table;
  json["cache_bytes"] = {{"allocated", d.cache_bytes_allocated}, {"live", d.cache_bytes_live}};
  json["slot_digest"] = d.slot_digest;
  return json;
}

Json finding_json(const DeviceFinding& f) {
  Json json;
  json["kind"] = finding_kind_name(f.kind);
  json["message"] = f.message;
  json["kernel"] = f.kernel;
  json["instruction"] = f.instruction;
  json["launch"] = f.launch;
  json["ptx_line"] = f.ptx_line;
  json["source"] = {{"file", f.source_file}, {"line", f.source_line}};
  json["inlined_at"] = {{"file", f.inlined_at_file}, {"line", f.inlined_at_line}};
  json["block"] = f.block;
  json["thread"] = f.thread;
  json["space"] = space_name(f.space);
  json["access_bytes"] = f.access_bytes;
  json["allocation"] = {{"number", f.allocation_number}, {"bytes", f.allocation_bytes}};
  json["repeats"] = f.repeats;
  return json;
}

}  // namespace

Json record_json(const Record& r) {
  const Verdict& v = r.verdict;
  Json json;
  json["outcome"] = outcome_name(v.outcome);
  json["stage"] = stage_name(v.stage);
  json["failure_class"] = v.failure_class;
  json["message"] = v.message;
  json["case"] = {{"name", r.c.name}, {"path", r.case_path}};
  json["history"] = r.history;
  json["variant"] = v.variant;
  json["shape"] = {{"layers", r.c.shape.layers},
                   {"query_heads", r.c.shape.query_heads},
                   {"kv_heads", r.c.shape.kv_heads},
                   {"head_dim_k", r.c.shape.head_dim_k},
                   {"head_dim_v", r.c.shape.head_dim_v}};
  json["mask"] = {{"causal", name_of(r.c.mask.causal)},
                  {"window_left", r.c.mask.window_left},
                  {"window_right", r.c.mask.window_right}};
  json["exec"] = {{"schedule_seed", r.c.exec.schedule_seed},
                  {"rounding", name_of(r.c.exec.rounding)},
                  {"rounding_seed", r.c.exec.rounding_seed}};
  if (v.divergence) json["divergence"] = divergence_json(*v.divergence);
  json["findings"] = Json::array();
  for (const DeviceFinding& f : v.findings) json["findings"].push_back(finding_json(f));
  if (!r.details.is_null()) json["engine"] = r.details;
  json["replay"] = r.replay;
  return json;
}

}  // namespace kv
