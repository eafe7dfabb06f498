// `kverify mutants`: builds the planted bugs and gives each to a campaign of its own.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/history_examine.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/file_hash.h"
#include "harness/core/hash.h"
#include "harness/history/finding.h"
#include "harness/judge/device_stage.h"
#include "harness/mutant/kept_trials.h"
#include "harness/mutant/kill_table.h"
#include "harness/mutant/matrix.h"
#include "harness/mutant/report.h"
#include "harness/relation/relation.h"
#include "harness/simt/control/kv_simt_control.h"

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

/// Of everything that decides what a campaign finds but the plugin.
Result<std::string> hash_of_kverify(const std::string& corpus) {
  KV_ASSIGN_OR_RETURN(std::string hashes, hash_of_file("/proc/self/exe"));
  KV_ASSIGN_OR_RETURN(const std::string device, hash_of_cpu_device());
  hashes += device;
  for (const std::string& path : corpus_files(corpus)) {
    KV_ASSIGN_OR_RETURN(const std::string one, hash_of_file(path));
    hashes += one;
  }
  Hasher hasher;
  hasher.add_text(hashes);
  return hex64(hasher.digest());
}

/// Spelled as killers are.
std::vector<std::string> all_properties() {
  std::vector<std::string> killers = {"contract/",    "provenance/", "interval/",
                                      "device/crash", "device/hang", "device/memory"};
  for (uint32_t kind = KV_SIMT_KIND_OUT_OF_BOUNDS; kind <= KV_SIMT_KIND_API; ++kind)
    if (kind != KV_SIMT_KIND_UNSUPPORTED && kind != KV_SIMT_KIND_LEAK)  // neither fails a case
      killers.push_back("device/device:" + finding_kind_name(kind));
  for (const Relation& relation : relations())
    killers.push_back("metamorphic/relation:" + std::string(relation.name));
  for (std::string& killer : killers) killer = property_of(killer);
  for (auto check = CheckClass::kDevice; check <= CheckClass::kEcho;
       check = static_cast<CheckClass>(static_cast<uint8_t>(check) + 1))
    killers.push_back(engine_property_of("/" + history_failure_class({.check = check})));
  return killers;
}

class Mutants {
 public:
  Mutants(const MutantsOptions& options, std::string plugins)
      : options_(options), plugins_(std::move(plugins)), output_(options.json_path) {}

  Result<ExitCode> run() {
    KV_ASSIGN_OR_RETURN(const std::vector<PlantedBug> bugs, read_planted(options_.patches));
    if (!options_.matrix.empty()) {
      KV_ASSIGN_OR_RETURN(reasons_, read_reasons(options_.patches + "/kept.json"));
    }
    KV_ASSIGN_OR_RETURN(ledger_, KeptTrials::open(options_.results));
    KV_ASSIGN_OR_RETURN(kverify_, hash_of_kverify(options_.corpus));
    KV_ASSIGN_OR_RETURN(folder_, RunFolder::create());
    KV_RETURN_IF_ERROR(choose(bugs));
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < options_.jobs; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    progress_.clear();
    if (interrupted()) return static_cast<ExitCode>(kInterruptedStatus);
    output_.say(planted_text(results_));
    KV_ASSIGN_OR_RETURN(const bool is_whole, tell_matrix());
    const ExitCode code =
        all_as_expected(results_) && is_whole ? ExitCode::kPass : ExitCode::kFailed;
    if (!options_.table.empty())
      KV_RETURN_IF_ERROR(update_kill_table(options_.table, bugs, results_));
    KV_RETURN_IF_ERROR(output_.finish({{"kverify", kVersion},
                                       {"command", "mutants"},
                                       {"mutants", planted_json(results_)},
                                       {"exit_code", static_cast<int>(code)}}));
    return code;
  }

 private:
  Result<void> choose(const std::vector<PlantedBug>& bugs) {
    for (const PlantedBug& bug : bugs) {
      const auto wanted = [&](const std::string& part) {
        return bug.name.find(part) != std::string::npos;
      };
      if (!options_.only.empty() &&
          std::none_of(options_.only.begin(), options_.only.end(), wanted))
        continue;
      KV_ASSIGN_OR_RETURN(std::string hash, hash_of_file(plugin_of(bug)));
      plugin_hashes_.push_back(std::move(hash));
      results_.push_back({.bug = bug, .trials = std::vector<Trial>(options_.seeds)});
    }
    if (!results_.empty()) return {};
    return bad_input(fmt::format("{}: expected a mutant whose name has '{}', got none",
                                 options_.patches, fmt::join(options_.only, "' or '")));
  }

  Result<bool> tell_matrix() const {
    if (options_.matrix.empty()) return true;
    const KillMatrix matrix = kill_matrix(results_, all_properties(), reasons_);
    output_.say(matrix_text(matrix));
    KV_RETURN_IF_ERROR(write_text_file(options_.matrix, matrix_json(matrix).dump(1) + "\n"));
    return matrix.faults.empty();
  }

  std::string plugin_of(const PlantedBug& bug) const {
    return plugins_ + "/lib" + bug.name + ".so";
  }

  void work() {
    for (;;) {
      const size_t next = next_++;
      if (next >= results_.size() * options_.seeds || interrupted()) return;
      // Every bug with the first seed before any with the second.
      const size_t bug = next % results_.size(), seed = next / results_.size();
      results_[bug].trials[seed] = trial(bug, options_.seed + seed);
      const std::lock_guard lock(telling_);
      progress_.show(fmt::format("{} of {} campaigns", next + 1, results_.size() * options_.seeds));
    }
  }

  Trial trial(size_t index, uint64_t seed) {
    const PlantedBug& bug = results_[index].bug;
    const TrialKey key{.bug = bug.name,
                       .patch = bug.hash,
                       .plugin = plugin_hashes_[index],
                       .kverify = kverify_,
                       .seed = seed,
                       .cases = options_.cases,
                       .seconds = options_.seconds,
                       .all = !options_.matrix.empty()};
    if (const auto known = ledger_->find(key)) return *known;
    Trial trial = run_trial({.plugin = plugin_of(bug),
                             .corpus = options_.corpus,
                             .folder = folder_.path(),
                             .is_engine = bug.is_of_engine(),
                             .all = key.all,
                             .seed = seed,
                             .cases = options_.cases,
                             .seconds = options_.seconds});
    if (interrupted()) return trial;
    const Result<void> kept = ledger_->add(key, trial);
    if (!kept.ok()) trial = {.killer = kept.error().message};
    return trial;
  }

  const MutantsOptions& options_;
  const std::string plugins_;
  Output output_;
  std::mutex telling_;
  Progress progress_;
  RunFolder folder_;
  std::string kverify_;
  std::map<std::string, std::string> reasons_;  // to keep properties, for the matrix
  std::unique_ptr<KeptTrials> ledger_;
  std::vector<PlantedResult> results_;
  std::vector<std::string> plugin_hashes_;  // of each result's plugin
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
