// `kverify explain`: which known fault gives this output?
#include "harness/explain/explain.h"

#include <fmt/format.h>

#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

// The judge of histories knows where it stands: what was written there last, and by whom.
Result<ExitCode> explain_engine_case(const ExplainOptions& options, const Case& c) {
  const Output output(options.json_path);
  KV_ASSIGN_OR_RETURN(const Examined examined, examine_once(options.bench, {}, c, {}));
  if (examined.verdict.outcome != Outcome::kFail)
    return bad_input(fmt::format("{}: expected a case that fails, got {}", options.case_path,
                                 outcome_name(examined.verdict.outcome)));
  output.say(examined.story);
  KV_RETURN_IF_ERROR(output.finish({{"kverify", kVersion},
                                    {"command", "explain"},
                                    {"failure_class", examined.verdict.failure_class},
                                    {"engine", examined.details}}));
  return ExitCode::kPass;
}

/// Of a case and its image under a relation, what the verdict is told of; where the two do not
/// agree, each within its bounds, no hypothesis about one of them says why.
Result<Explanation> explain_pair(const ExplainOptions& options, const Case& c,
                                 const Observe& observe) {
  KV_ASSIGN_OR_RETURN(const Examined examined, examine_once(options.bench, {}, c, {}));
  const Verdict& v = examined.verdict;
  if (v.outcome != Outcome::kFail || v.stage != Stage::kMetamorphic)
    return kv::explain(examined.c, observe, {.cases_max = options.cases});
  return Explanation{.verdict = v, .sentence = named_by_verdict(v)};
}

}  // namespace

Result<ExitCode> explain(const ExplainOptions& options) {
  const Output output(options.json_path);
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(options.case_path));
  if (c.engine) return explain_engine_case(options, c);
  const Observe observe = [&](const Case& one) { return observe_once(options.bench, one); };
  auto explained = c.exec.relation.empty() ? kv::explain(c, observe, {.cases_max = options.cases})
                                           : explain_pair(options, c, observe);
  if (!explained.ok())
    return Error{explained.error().kind, options.case_path + ": " + explained.error().message};
  const Explanation& e = *explained;
  std::string text = fmt::format("{}\n  {}\n", e.verdict.failure_class, e.verdict.message);
  if (e.numeric || e.hypotheses > 0) {
    text += fmt::format("  {} hypotheses tried, {} contain all of the {}{}\n", e.hypotheses,
                        e.remain.size(), e.numeric ? "output" : "new slots",
                        e.cases == 0 ? "" : fmt::format(", after {} further cases", e.cases));
    for (const Named& h : e.remain) text += fmt::format("    {:<28} {}\n", h.name, h.sentence);
  }
  output.say(text + "\n" + e.sentence + "\n");
  nlohmann::ordered_json json;
  json["kverify"] = kVersion;
  json["command"] = "explain";
  json["failure_class"] = e.verdict.failure_class;
  json["numeric"] = e.numeric;
  json["hypotheses"] = e.hypotheses;
  json["further_cases"] = e.cases;
  json["confirmed_by"] = e.confirmed;
  json["contradicted_by"] = e.contradicted;
  json["remain"] = nlohmann::ordered_json::array();
  for (const Named& h : e.remain)
    json["remain"].push_back({{"name", h.name}, {"sentence", h.sentence}});
  json["by_chance"] = nlohmann::ordered_json::array();
  for (const Named& h : e.by_chance) json["by_chance"].push_back(h.name);
  json["sentence"] = e.sentence;
  KV_RETURN_IF_ERROR(output.finish(json));
  return ExitCode::kPass;
}

}  // namespace kv::cli
