// `kverify mutate`: changes the PTX one instruction at a time and says what the suite lets live.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "harness/cli/commands.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/output.h"
#include "harness/cli/run_folder.h"
#include "harness/cli/version.h"
#include "harness/mutant/machine_report.h"
#include "harness/mutant/program.h"

namespace kv::cli {
namespace {

constexpr int kLostMax = 50;  // processes of one shard

using Json = nlohmann::ordered_json;

/// What a shard has written: results, perhaps the one that it was at, perhaps its facts.
struct ShardLog {
  std::vector<MachineResult> results;
  std::optional<MachineResult> begun;
  std::optional<ShardFacts> facts;
};

Result<ShardLog> read_log(const std::string& path) {
  ShardLog log;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;  // cut off where the process was lost
    if (json.contains("chosen")) {
      log.facts = {json["mutations"], json["executed"], json["chosen"]};
    } else if (json.contains("begin")) {
      KV_ASSIGN_OR_RETURN(log.begun, result_from_json(json["begin"]));
    } else {
      KV_ASSIGN_OR_RETURN(MachineResult result, result_from_json(json));
      log.results.push_back(std::move(result));
      log.begun.reset();
    }
  }
  return log;
}

class Mutate {
 public:
  explicit Mutate(const MutateOptions& options) : options_(options), output_(options.json_path) {}

  Result<ExitCode> run() {
    MachineReport report;
    if (!options_.judgements.empty()) {
      KV_ASSIGN_OR_RETURN(report.judgements, read_judgements(options_.judgements));
    }
    KV_ASSIGN_OR_RETURN(folder_, RunFolder::create());
    std::vector<std::thread> threads;
    failures_.resize(options_.jobs, Result<void>());
    logs_.resize(options_.jobs);
    for (uint32_t i = 0; i < options_.jobs; ++i)
      threads.emplace_back([this, i] { failures_[i] = run_shard_to_its_end(i); });
    for (std::thread& thread : threads) thread.join();
    if (interrupted()) return static_cast<ExitCode>(kInterruptedStatus);
    for (const Result<void>& failure : failures_) KV_RETURN_IF_ERROR(failure);
    for (ShardLog& log : logs_) {
      if (log.facts) report.facts = *log.facts;
      report.results.insert(report.results.end(), log.results.begin(), log.results.end());
    }
    std::sort(report.results.begin(), report.results.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
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

 private:
  std::vector<std::string> shard_arguments(uint32_t shard, const std::string& results) const {
    std::vector<std::string> arguments = {"mutate-shard",
                                          "--kernel",
                                          options_.kernel,
                                          "--mutations",
                                          std::to_string(options_.mutations),
                                          "--cases",
                                          std::to_string(options_.cases),
                                          "--seed",
                                          std::to_string(options_.seed),
                                          "--seconds",
                                          fmt::format("{}", options_.seconds),
                                          "--shard",
                                          std::to_string(shard),
                                          "--shards",
                                          std::to_string(options_.jobs),
                                          "--skip",
                                          std::to_string(logs_[shard].results.size()),
                                          "--results",
                                          results};
    if (!options_.bench.plugin_path.empty())
      arguments.insert(arguments.end(), {"--plugin", options_.bench.plugin_path});
    return arguments;
  }

  /// A process that is lost has killed the mutant that it was at; another goes on behind it.
  Result<void> run_shard_to_its_end(uint32_t shard) {
    for (int lost = 0; lost <= kLostMax && !interrupted(); ++lost) {
      const std::string stem = fmt::format("{}/shard-{}-{}", folder_.path(), shard, lost);
      const Ended ended =
          run_program({.arguments = shard_arguments(shard, stem), .log = stem + ".log"});
      KV_ASSIGN_OR_RETURN(ShardLog log, read_log(stem));
      ShardLog& all = logs_[shard];
      all.results.insert(all.results.end(), log.results.begin(), log.results.end());
      all.facts = log.facts;
      if (ended.status == 0) return {};
      if (!log.begun) {
        std::ifstream said(stem + ".log", std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(said)), {});
        return environment_error("a shard ended before its first mutant: " + text);
      }
      log.begun->killer = fmt::format("process/exit-{}", ended.status);
      log.begun->reached = log.begun->infected = log.begun->propagated = true;
      all.results.push_back(*log.begun);
    }
    return environment_error("too many processes of one shard were lost");
  }

  const MutateOptions& options_;
  Output output_;
  RunFolder folder_;
  std::vector<ShardLog> logs_;
  std::vector<Result<void>> failures_;
};

}  // namespace

Result<ExitCode> mutate(const MutateOptions& options) { return Mutate(options).run(); }

Result<ExitCode> mutate_shard(const MutateOptions& options) {
  StatusPage status;
  KV_ASSIGN_OR_RETURN(const CudaRuntime runtime, load_runtime(DeviceKind::kCpu));
  const std::string path =
      options.bench.plugin_path.empty() ? default_plugin_path() : options.bench.plugin_path;
  KV_ASSIGN_OR_RETURN(const LoadedPlugin plugin, load_plugin(path, runtime));
  std::ofstream file(options.results, std::ios::binary);
  const auto write = [&](const Json& json) { file << json.dump() << "\n" << std::flush; };
  const MachineOptions machine{.kernel = options.kernel,
                               .mutations_max = options.mutations,
                               .suite = {.seed = options.seed, .cases = options.cases},
                               .seconds_max = options.seconds,
                               .shard = options.shard,
                               .shards = options.shards,
                               .skip = options.skip};
  const Bench bench{plugin, runtime, status};
  KV_ASSIGN_OR_RETURN(const ShardFacts facts,
                      run_shard(
                          bench, machine,
                          [&](const MachineResult& r) {
                            write({{"begin", to_json(r)}});
                          },
                          [&](const MachineResult& r) { write(to_json(r)); }));
  write({{"mutations", facts.mutations}, {"executed", facts.executed}, {"chosen", facts.chosen}});
  file.close();
  // Destructors of foreign libraries may crash; nothing of ours needs them.
  std::_Exit(file.good() ? 0 : static_cast<int>(ExitCode::kEnvironment));
}

}  // namespace kv::cli
