// `kverify minimize`: one failing case, made small while it goes on failing in the same way.
#include "harness/minimize/minimize.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/case/data.h"
#include "harness/case/json.h"
#include "harness/case/show.h"
#include "harness/certify/corpus.h"
#include "harness/certify/reproduce.h"
#include "harness/cli/commands.h"
#include "harness/cli/minimized.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/minimize/weight.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

constexpr uint32_t kRuns = 3;  // of the original and of the result, each in a fresh process

std::string size_text(const Case& c) {
  const Weight w = weight_of(c);
  return fmt::format(
      "{} operations, {} requests, {} slots, {} query rows, {} pages, {} heads of "
      "dimension {}, {} layers",
      w[0], w[2], w[6], w[7], w[8], c.shape.query_heads, c.shape.head_dim_k, w[3]);
}

Error does_not_fail(const std::string& path, const Verdict& v) {
  return bad_input(fmt::format("{}: expected a case that fails, got {}{}", path,
                               outcome_name(v.outcome), v.message.empty() ? "" : ": " + v.message));
}

}  // namespace

std::string minimized_path(const std::string& case_path) {
  std::filesystem::path path(case_path);
  return path.replace_extension(".min.json").string();
}

Result<Minimized> minimize_to(const std::string& out, const Case& c, const Fingerprint& pinned,
                              Reproducer& reproducer, const MinimizeLimits& limits) {
  const auto keep = [&](const Case& best) -> Result<void> {
    Case stored = best;
    if (!c.engine) stored.data.digest = input_digest(stored);
    return save_case(out, stored);
  };
  KV_RETURN_IF_ERROR(keep(c));
  return kv::minimize(
      c, {.fails = [&](const Case& one) { return reproducer.fails(one, pinned); }, .keep = keep},
      limits);
}

Result<ExitCode> minimize(const MinimizeOptions& options) {
  const Output output(options.json_path);
  const std::string out = options.out.empty() ? minimized_path(options.case_path) : options.out;
  KV_ASSIGN_OR_RETURN(Case c, load_checked_case(options.case_path));
  KV_ASSIGN_OR_RETURN(Reproducer reproducer,
                      Reproducer::start(options.bench, options.case_path, c));
  KV_ASSIGN_OR_RETURN(const Reproduction before, reproducer.rate(c, kRuns));
  if (before.failed == 0) return does_not_fail(options.case_path, before.examined.verdict);
  if (!before.always()) {
    output.say(
        fmt::format("{}: failed in {} of {} runs{}: nothing can be removed from a case that "
                    "does not fail every time in one way\n",
                    options.case_path, before.failed, before.runs,
                    before.one_fault ? "" : ", and not always in the same way"));
    return ExitCode::kNondeterministic;
  }
  const MinimizeLimits limits{
      .attempts_max = options.attempts,
      .time_max = std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1000))};
  KV_ASSIGN_OR_RETURN(const Minimized m,
                      minimize_to(out, c, *before.fingerprint, reproducer, limits));
  KV_ASSIGN_OR_RETURN(const Reproduction after, reproducer.rate(m.c, kRuns));
  const bool stable = after.always() && after.fingerprint == before.fingerprint;
  output.say(fmt::format(
      "{}\n  was         {}\n  is          {}\n  candidates  {} run, {} taken, {}{}\n  {}\n"
      "  stored      {}\n\n{}",
      before.fingerprint->text(), size_text(c), size_text(m.c), m.attempts, m.accepted,
      m.complete ? "nothing more to remove" : "stopped at its limit",
      reproducer.unstable() == 0
          ? ""
          : fmt::format(", {} failed once and not again", reproducer.unstable()),
      stable ? "fails       in every run" : "fails       not in every run", out, show_case(m.c)));
  nlohmann::ordered_json json;
  json["kverify"] = kVersion;
  json["command"] = "minimize";
  json["fingerprint"] = before.fingerprint->text();
  json["attempts"] = m.attempts;
  json["accepted"] = m.accepted;
  json["complete"] = m.complete;
  json["stable"] = stable;
  json["case"] = out;
  KV_RETURN_IF_ERROR(output.finish(json));
  return stable ? ExitCode::kPass : ExitCode::kNondeterministic;
}

}  // namespace kv::cli
