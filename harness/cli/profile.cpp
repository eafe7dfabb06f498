// `kverify profile`: what a case's launches cost, counted exactly.
#include <fmt/format.h>

#include <algorithm>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/json_fields.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kProfileBytesMax = uint64_t{1} << 30;
constexpr size_t kKernelNameMax = 34;

/// "void kv::attend<float, 64>(Parameters)" to "attend<float, 64>", cut to fit.
std::string short_name(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  if (const size_t at = name.find(kAnonymous); at != name.npos) name.erase(at, kAnonymous.size());
  const size_t arguments = name.find('(');
  if (arguments != name.npos && arguments > 0) name.resize(arguments);
  if (name.starts_with("void ")) name.erase(0, 5);
  const size_t scope = name.rfind("::", name.find('<'));
  if (scope != name.npos) name.erase(0, scope + 2);
  if (name.size() > kKernelNameMax) name = name.substr(0, kKernelNameMax - 2) + "..";
  return name;
}

std::string row_text(const std::string& name, const Json& row) {
  const uint64_t moved = number_field(row, "global_bytes_moved");
  const uint64_t compulsory = number_field(row, "global_bytes_compulsory");
  const std::string ratio =
      compulsory ? fmt::format("{:.2f}", double(moved) / double(compulsory)) : "-";
  return fmt::format(
      "{:<34} {:>6} {:>11} {:>9} {:>12} {:>12} {:>7} {:>9} {:>9} {:>9} {:>8} {:>7}\n", name,
      number_field(row, "blocks"), number_field(row, "warp_instructions"), number_field(row, "mma"),
      moved, compulsory, ratio, number_field(row, "shared_requests"),
      number_field(row, "shared_bank_conflicts"), number_field(row, "divergent_branches"),
      number_field(row, "barriers"), number_field(row, "shared_bytes_peak"));
}

std::string table(const Json& profile) {
  std::string text =
      fmt::format("{:<34} {:>6} {:>11} {:>9} {:>12} {:>12} {:>7} {:>9} {:>9} {:>9} {:>8} {:>7}\n",
                  "launch", "blocks", "warp instr", "mma", "bytes moved", "least bytes", "ratio",
                  "shared rq", "conflicts", "divergent", "barriers", "shared");
  for (const Json& launch : profile["launches"]) {
    text += row_text(short_name(text_field(launch, "kernel")), launch);
  }
  const Json& sum = profile["sum"];
  text += row_text("sum", sum) + "\nwarp instructions by class\n";
  for (const auto& [name, count] : sum["instructions"].items()) {
    if (count.is_number_unsigned() && count != 0)
      text += fmt::format("  {:<10} {:>12}\n", name, count.get<uint64_t>());
  }
  return text;
}

Result<RunEnd> run_to_end(CaseRunner& runner, const Case& c) {
  KV_RETURN_IF_ERROR(runner.submit(c));
  for (;;) {
    KV_ASSIGN_OR_RETURN(CaseRunner::Event event, runner.next());
    if (auto* end = std::get_if<RunEnd>(&event)) return std::move(*end);
  }
}

Result<ExitCode> refused(const RunEnd& end) {
  const std::string what = "the case did not complete: " + end.message;
  if (end.outcome == RunOutcome::kUnsupported) return unsupported(what);
  if (end.outcome == RunOutcome::kEnvironment) return environment_error(what);
  return bad_input(what + "; kverify replay says more");
}

}  // namespace

Result<ExitCode> profile(const ProfileOptions& options) {
  const std::vector<WrittenFile> written = {{"--lcov", options.lcov_path},
                                            {"--json", options.json_path.value_or("")}};
  KV_RETURN_IF_ERROR(require_different_files(written));
  KV_RETURN_IF_ERROR(require_folders(written));
  const Output output(options.json_path);
  if (options.bench.device != DeviceKind::kCpu) {
    return bad_input("profile counts on the CPU device: expected --device cpu, got cuda");
  }
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(options.case_path));
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  RunnerOptions run = runner_options(options.bench, folder.path());
  run.profile_path = folder.path() + "/profile.json";
  run.lcov_path = options.lcov_path;
  KV_ASSIGN_OR_RETURN(CaseRunner runner, CaseRunner::start(run));
  KV_ASSIGN_OR_RETURN(const RunEnd end, run_to_end(runner, c));
  if (end.outcome != RunOutcome::kCompleted) return refused(end);
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(run.profile_path, kProfileBytesMax));
  const Json counted = Json::parse(text, nullptr, false);
  const auto has = [&](const char* name, Json::value_t type) {
    return counted.is_object() && counted.contains(name) && counted[name].type() == type;
  };
  if (!has("launches", Json::value_t::array) || !has("sum", Json::value_t::object) ||
      !counted["sum"].contains("instructions")) {
    return environment_error("the worker process left no profile");
  }
  output.say(table(counted));
  Json json;
  json["kverify"] = kVersion;
  json["command"] = "profile";
  json["case"] = options.case_path;
  json.update(counted);
  KV_RETURN_IF_ERROR(output.finish(json));
  return ExitCode::kPass;
}

}  // namespace kv::cli
