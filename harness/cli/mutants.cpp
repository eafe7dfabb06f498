// `kverify mutants`: builds the planted bugs and gives each to a campaign of its own.
#include <fmt/format.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "harness/cli/commands.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/output.h"
#include "harness/cli/run_folder.h"
#include "harness/cli/version.h"
#include "harness/mutant/report.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;

Result<void> build(const std::string& folder) {
  if (folder.empty()) return {};
  const std::string command = "cmake --build '" + folder + "' --target mutants >&2";
  const int status = std::system(command.c_str());
  if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return environment_error("the mutants could not be built: " + command);
}

struct Work {
  size_t bug = 0, seed = 0;
};

class Mutants {
 public:
  Mutants(const MutantsOptions& options, std::string plugins)
      : options_(options), plugins_(std::move(plugins)), output_(options.json_path) {}

  Result<ExitCode> run() {
    KV_ASSIGN_OR_RETURN(std::vector<PlantedBug> bugs, read_planted(options_.patches));
    KV_ASSIGN_OR_RETURN(folder_, RunFolder::create());
    for (PlantedBug& bug : bugs) {
      if (bug.name.find(options_.only) == std::string::npos) continue;
      results_.push_back({.bug = std::move(bug), .trials = {}});
      results_.back().trials.resize(options_.seeds);
    }
    if (results_.empty())
      return bad_input(options_.patches + ": expected a mutant whose name has '" + options_.only +
                       "', got none");
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < options_.jobs; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    output_.say(planted_text(results_));
    const ExitCode code = all_as_expected(results_) ? ExitCode::kPass : ExitCode::kFailed;
    KV_RETURN_IF_ERROR(output_.finish({{"kverify", kVersion},
                                       {"command", "mutants"},
                                       {"mutants", planted_json(results_)},
                                       {"exit_code", static_cast<int>(code)}}));
    return interrupted() ? static_cast<ExitCode>(kInterruptedStatus) : code;
  }

 private:
  void work() {
    for (;;) {
      const size_t next = next_++;
      if (next >= results_.size() * options_.seeds || interrupted()) return;
      PlantedResult& result = results_[next / options_.seeds];
      const uint64_t seed = next % options_.seeds;
      result.trials[seed] = run_trial({.plugin = plugins_ + "/lib" + result.bug.name + ".so",
                                       .corpus = options_.corpus,
                                       .folder = folder_.path(),
                                       .seed = options_.seed + seed,
                                       .cases = options_.cases,
                                       .seconds = options_.seconds});
    }
  }

  const MutantsOptions& options_;
  const std::string plugins_;
  Output output_;
  RunFolder folder_;
  std::vector<PlantedResult> results_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace

Result<ExitCode> mutants(const MutantsOptions& options) {
  const fs::path tree = fs::path(default_plugin_path()).parent_path().parent_path();
  std::string plugins = options.plugins;
  if (plugins.empty()) {
    KV_RETURN_IF_ERROR(build(tree.string()));
    plugins = (tree / "lib" / "mutants").string();
  }
  return Mutants(options, plugins).run();
}

}  // namespace kv::cli
