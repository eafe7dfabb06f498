// `kverify mutate`: changes the PTX one instruction at a time and says what the suite lets live.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "harness/case/text_file.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/file_hash.h"
#include "harness/core/json_fields.h"
#include "harness/mutant/kept_trials.h"
#include "harness/mutant/machine_report.h"
#include "harness/mutant/program.h"
#include "harness/plugin/runtime.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;
constexpr int kLostMax = 200;  // processes of one shard
constexpr const char* kSettingsFile = "campaign.json";

using Json = nlohmann::ordered_json;

/// What shards have written: results, perhaps the one that the last was at, perhaps the facts.
struct ShardLog {
  std::map<uint64_t, MachineResult> results;  // by index
  std::optional<MachineResult> begun;
  std::optional<ShardFacts> facts;
};

std::string log_path(const std::string& folder, uint64_t shard) {
  return fmt::format("{}/shard-{}.jsonl", folder, shard);
}

Result<void> read_log(const std::string& path, ShardLog& log) {
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;  // cut off where the process was lost
    if (json.contains("chosen")) {
      KV_ASSIGN_OR_RETURN(log.facts, facts_from_json(json));
    } else if (json.contains("resumed")) {
      log.begun.reset();
    } else if (json.contains("begin")) {
      KV_ASSIGN_OR_RETURN(log.begun, result_from_json(json["begin"]));
    } else {
      KV_ASSIGN_OR_RETURN(MachineResult result, result_from_json(json));
      log.results[result.index] = std::move(result);
      log.begun.reset();
    }
  }
  return {};
}

/// All that is in the folder, whatever the number of shards was.
Result<ShardLog> read_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  if (error) return environment_error(folder + ": cannot be listed: " + error.message());
  std::sort(paths.begin(), paths.end());
  ShardLog log;
  for (const std::string& path : paths) KV_RETURN_IF_ERROR(read_log(path, log));
  return log;
}

std::string plugin_of(const MutateOptions& options) {
  return options.bench.plugin_path.empty() ? default_plugin_path() : options.bench.plugin_path;
}

/// The survivors that changed a value; empty for "".
Result<std::vector<MachineResult>> infected_survivors(const std::string& path) {
  std::vector<MachineResult> infected;
  if (path.empty()) return infected;
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("survivors") || !json["survivors"].is_array())
    return bad_input(path + ": expected what `kverify mutate --json` wrote, with its survivors");
  for (const auto& survivor : json["survivors"]) {
    KV_ASSIGN_OR_RETURN(MachineResult result, result_from_json(survivor, path));
    if (result.infected) infected.push_back(std::move(result));
  }
  if (infected.empty()) return bad_input(path + ": no survivor of it was infected");
  return infected;
}

/// As infected_survivors() reads them.
Json survivors_json(const std::vector<MachineResult>& results) {
  Json json = {{"survivors", Json::array()}};
  for (const MachineResult& r : results) json["survivors"].push_back(to_json(r));
  return json;
}

/// What decides a result; a folder holds those of one setting.
Result<std::string> settings_of(const MutateOptions& o, const Json& again) {
  KV_ASSIGN_OR_RETURN(const std::string plugin, hash_of_file(plugin_of(o)));
  KV_ASSIGN_OR_RETURN(const std::string kverify, hash_of_file("/proc/self/exe"));
  KV_ASSIGN_OR_RETURN(const std::string device, hash_of_cpu_device());
  const Json json = {{"plugin", plugin},         {"kverify", kverify}, {"device", device},
                     {"kernel", o.kernel},       {"cases", o.cases},   {"seed", o.seed},
                     {"mutations", o.mutations}, {"again", again},     {"seconds", o.seconds},
                     {"reach", o.reach_cases}};
  return json_text(json) + "\n";
}

/// Results of other settings are never mixed in.
Result<void> claim(const std::string& folder, const std::string& settings) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return environment_error(folder + ": cannot be made: " + error.message());
  const std::string path = folder + "/" + kSettingsFile;
  std::ifstream file(path, std::ios::binary);
  if (!file) return write_text_file(path, settings);
  const std::string held((std::istreambuf_iterator<char>(file)), {});
  if (held == settings) return {};
  return bad_input(folder + ": expected the results of " + settings.substr(0, settings.size() - 1) +
                   ", got those of " + held.substr(0, 400));
}

class Mutate {
 public:
  explicit Mutate(const MutateOptions& options) : options_(options), output_(options.json_path) {}

  Result<ExitCode> run() {
    MachineReport report;
    if (!options_.judgements.empty()) {
      KV_ASSIGN_OR_RETURN(report.judgements, read_judgements(options_.judgements));
    }
    KV_ASSIGN_OR_RETURN(temporary_, RunFolder::create());
    folder_ = options_.folder.empty() ? temporary_.path() : options_.folder;
    KV_ASSIGN_OR_RETURN(const auto survivors, infected_survivors(options_.again));
    const Json again = survivors_json(survivors);
    KV_ASSIGN_OR_RETURN(const std::string settings, settings_of(options_, again["survivors"]));
    KV_RETURN_IF_ERROR(claim(folder_, settings));
    if (!survivors.empty()) {  // the file may change while shards read it
      again_ = temporary_.path() + "/again.json";
      KV_RETURN_IF_ERROR(write_text_file(again_, json_text(again) + "\n"));
    }
    failures_.resize(options_.jobs, Result<void>());
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < options_.jobs; ++i)
      threads.emplace_back([this, i] { failures_[i] = run_shard_to_its_end(i); });
    for (std::thread& thread : threads) thread.join();
    if (interrupted()) return static_cast<ExitCode>(kInterruptedStatus);
    for (const Result<void>& failure : failures_) KV_RETURN_IF_ERROR(failure);
    KV_ASSIGN_OR_RETURN(ShardLog log, read_folder(folder_));
    if (log.facts) report.facts = *log.facts;
    for (auto& [index, result] : log.results) report.results.push_back(std::move(result));
    return finish(report);
  }

 private:
  Result<ExitCode> finish(const MachineReport& report) const {
    output_.say(machine_text(report));
    const bool good = report.score() >= options_.score_min;
    const ExitCode code = report.results.empty() ? ExitCode::kVacuous
                          : good                 ? ExitCode::kPass
                                                 : ExitCode::kFailed;
    Json json = machine_json(report);
    json["exit_code"] = static_cast<int>(code);
    KV_RETURN_IF_ERROR(output_.finish(json));
    return code;
  }

  std::vector<std::string> shard_arguments(uint32_t shard) const {
    std::vector<std::string> arguments = {"mutate-shard",
                                          "--kernel",
                                          options_.kernel,
                                          "--mutations",
                                          std::to_string(options_.mutations),
                                          "--cases",
                                          std::to_string(options_.cases),
                                          "--reach-cases",
                                          std::to_string(options_.reach_cases),
                                          "--seed",
                                          std::to_string(options_.seed),
                                          "--seconds",
                                          fmt::format("{}", options_.seconds),
                                          "--shard",
                                          std::to_string(shard),
                                          "--shards",
                                          std::to_string(options_.jobs),
                                          "--dir",
                                          folder_,
                                          "--plugin",
                                          plugin_of(options_)};
    if (!again_.empty()) arguments.insert(arguments.end(), {"--again", again_});
    return arguments;
  }

  /// A process that is lost has killed the mutant that it was at; another goes on behind it.
  Result<void> run_shard_to_its_end(uint32_t shard) {
    const std::string path = log_path(folder_, shard);
    for (int lost = 0; lost <= kLostMax && !interrupted(); ++lost) {
      const std::string said = fmt::format("{}/shard-{}.log", temporary_.path(), shard);
      // What a killed campaign had begun is not what this process is lost at.
      std::ofstream(path, std::ios::binary | std::ios::app) << "\n{\"resumed\": true}\n";
      const Ended ended = run_program({.arguments = shard_arguments(shard), .log = said});
      if (ended.status == 0 || interrupted()) return {};
      ShardLog log;
      KV_RETURN_IF_ERROR(read_log(path, log));
      if (!log.begun) return lost_early(said, ended.status);
      log.begun->killer = fmt::format("process/exit-{}", ended.status);
      log.begun->reached = log.begun->infected = log.begun->propagated = true;
      std::ofstream file(path, std::ios::binary | std::ios::app);
      file << json_text(to_json(*log.begun)) << "\n";
    }
    if (interrupted()) return {};
    return environment_error("too many processes of one shard were lost");
  }

  static Result<void> lost_early(const std::string& log, int status) {
    std::ifstream said(log, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(said)), {});
    const std::string sentence = "a shard ended before its first mutant: " + text;
    if (status == static_cast<int>(ExitCode::kBadInput)) return bad_input(sentence);
    return environment_error(sentence);
  }

  const MutateOptions& options_;
  Output output_;
  RunFolder temporary_;
  std::string folder_;
  std::string again_;  // survivors of the run before, as they were at the start
  std::vector<Result<void>> failures_;
};

}  // namespace

Result<ExitCode> mutate(const MutateOptions& options) { return Mutate(options).run(); }

Result<ExitCode> mutate_shard(const MutateOptions& options) {
  StatusPage status;
  KV_ASSIGN_OR_RETURN(const CudaRuntime runtime, load_runtime(DeviceKind::kCpu));
  KV_ASSIGN_OR_RETURN(const LoadedPlugin plugin, load_plugin(plugin_of(options), runtime));
  KV_ASSIGN_OR_RETURN(const ShardLog before, read_folder(options.folder));
  MachineOptions machine{.kernel = options.kernel,
                         .mutations_max = options.mutations,
                         .suite = {.seed = options.seed, .cases = options.cases},
                         .reach_cases = options.reach_cases,
                         .seconds_max = options.seconds,
                         .shard = options.shard,
                         .shards = options.shards};
  KV_ASSIGN_OR_RETURN(machine.only, infected_survivors(options.again));
  for (const auto& [index, result] : before.results) machine.done.insert(index);
  std::ofstream file(log_path(options.folder, options.shard), std::ios::binary | std::ios::app);
  const auto write = [&](const Json& json) { file << json_text(json) << "\n" << std::flush; };
  const Bench bench{plugin, runtime, status};
  KV_ASSIGN_OR_RETURN(const ShardFacts facts,
                      run_shard(
                          bench, machine,
                          [&](const MachineResult& r) {
                            write({{"begin", to_json(r)}});
                          },
                          [&](const MachineResult& r) { write(to_json(r)); }));
  write(to_json(facts));
  file.close();
  // Destructors of foreign libraries may crash; nothing of ours needs them.
  std::_Exit(file.good() ? 0 : static_cast<int>(ExitCode::kEnvironment));
}

}  // namespace kv::cli
