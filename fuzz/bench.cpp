#include "fuzz/bench.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "fuzz/guidance.h"
#include "harness/relation/pair_judge.h"
#include "harness/run/kernel_run.h"
#include "harness/run/probe.h"

namespace kv::fuzzing {
namespace {

namespace fs = std::filesystem;

struct Open {
  CudaRuntime runtime;
  LoadedPlugin plugin;
  StatusPage status;
  OfferSet offered;
  PluginFacts facts;
};

std::unique_ptr<Open>& the_bench() {
  static std::unique_ptr<Open> bench;
  return bench;
}

template <class T>
T value_or_exit(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "fuzz: %s\n", result.error().message.c_str());
  std::_Exit(3);
}

/// Both runs of a pair, judged as they go.
class Run {
 public:
  Run(const Open& open, const Case& c, std::optional<Image> image)
      : bench_{open.plugin, open.runtime, const_cast<StatusPage&>(open.status)},
        judge_(c, std::move(image), open.facts, {}) {}

  RunEnd run(const Case& c) {
    return run_kernel_case(c, bench_, [this](const OpObservation& observation) {
      if (!observation.layers.empty()) splits_ = observation.profile.splits;
      judge_.add(observation);
    });
  }
  PairJudge& judge() { return judge_; }
  uint32_t splits() const { return splits_; }

 private:
  kv::Bench bench_;
  PairJudge judge_;
  uint32_t splits_ = 0;
};

}  // namespace

std::string find_library(const char* variable, const std::string& file) {
  if (const char* chosen = std::getenv(variable)) return chosen;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path beside = folder / "lib" / file;
  return fs::exists(beside, ignored) ? beside : folder.parent_path() / "lib" / file;
}

void open_bench() {
  if (the_bench() != nullptr) return;
  setenv("KVERIFY_SIMT", find_library("KVERIFY_SIMT", "simt/libcudart.so.13").c_str(), 1);
  auto open = std::make_unique<Open>();
  open->runtime = value_or_exit(load_runtime(DeviceKind::kCpu));
  open->plugin = value_or_exit(
      load_plugin(find_library("KVERIFY_FUZZ_PLUGIN", "libkvattn_plugin.so"), open->runtime));
  open->offered = probe_offers(open->plugin);
  open->facts = plugin_facts(open->plugin);
  const auto edges = edge_counters();
  open->runtime.control->set_edge_counters(edges.data(), edges.size());
  the_bench() = std::move(open);
}

DrawOptions drawing() {
  const Open& open = *the_bench();
  return {.variants = open.facts.variants, .offered = open.offered, .limits = {}};
}

FuzzRun run_case(const Case& c) {
  const Open& open = *the_bench();
  auto image = image_of(c);
  if (!image.ok()) {
    FuzzRun run{.c = c, .verdict = {}};
    run.verdict.outcome = Outcome::kUnsupported;
    return run;
  }
  const std::optional<Case> other =
      image->has_value() ? std::optional<Case>((*image)->c) : std::nullopt;
  Run run(open, c, std::move(*image));
  run.judge().end_case(run.run(c));
  RunEnd image_end;
  if (other) image_end = run.run(*other);
  PairVerdict told = run.judge().finish(other ? &image_end : nullptr);
  return {.c = std::move(told.c), .verdict = std::move(told.verdict), .splits = run.splits()};
}

}  // namespace kv::fuzzing
