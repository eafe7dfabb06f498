// The internal `kverify mutants-attribute`: which properties object to one planted bug.
#include "harness/cli/mutants_attribute.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/mutant/attribution.h"
#include "harness/relation/draw_related.h"

namespace kv::cli {
namespace {

Result<std::vector<Case>> cases_for(const AttributeOptions& o, const LoadedPlugin& plugin) {
  std::vector<Case> cases;
  if (!is_corpus(o.corpus))
    return bad_input(o.corpus + ": expected a folder with seeds/ or regression/, got neither");
  for (const std::string& path : corpus_files(o.corpus)) {
    KV_ASSIGN_OR_RETURN(Case c, load_checked_case(path));
    if (!c.engine) cases.push_back(std::move(c));
  }
  for (uint64_t i = 0; i < o.cases; ++i) {
    PhiloxSource choices(o.seed, i);
    cases.push_back(draw_related(choices, {.variants = plugin.variants}));
  }
  return cases;
}

nlohmann::ordered_json told(const Attribution& all) {
  nlohmann::ordered_json json = {{"summary", {{"cases", all.cases}}}};
  json["failures"] = nlohmann::ordered_json::array();
  for (const auto& [objector, cases] : all.objectors) {
    json["failures"].push_back({{"stage", objector.first},
                                {"failure_class", objector.second},
                                {"history", false},
                                {"message", ""},
                                {"cases", cases}});
  }
  return json;
}

}  // namespace

Result<ExitCode> mutants_attribute(const AttributeOptions& o) {
  StatusPage status;
  KV_ASSIGN_OR_RETURN(const CudaRuntime runtime, load_runtime(DeviceKind::kCpu));
  KV_ASSIGN_OR_RETURN(const LoadedPlugin plugin, load_plugin(o.plugin, runtime));
  KV_ASSIGN_OR_RETURN(const std::vector<Case> cases, cases_for(o, plugin));
  KV_ASSIGN_OR_RETURN(const Attribution all, attribute({plugin, runtime, status}, cases));
  KV_RETURN_IF_ERROR(write_text_file(o.json, told(all).dump() + "\n"));
  // Destructors of foreign libraries may crash; nothing of ours needs them.
  std::_Exit(static_cast<int>(all.cases > 0 ? ExitCode::kPass : ExitCode::kVacuous));
}

}  // namespace kv::cli
