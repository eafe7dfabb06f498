// Two independent implementations, one case: the fused kernels and the materialised baseline both
// conform, and where one computes a row the other has none of the same mistakes: neither is the
// other's oracle, both are held against the reference.
// Kills: a slip in the reference or the judge that agrees with one way of computing attention (a
// weight rounded as the fused kernels round it, sums in their order): the other way is then
// rejected.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "harness/gen/draw.h"
#include "harness/judge/judge.h"
#include "harness/run/case_runner.h"

namespace kv::props {
namespace {

constexpr uint64_t kCases = 60, kSeed = 11;

/// Runs cases on one plugin, in a worker of its own.
class Side {
 public:
  explicit Side(const std::string& plugin)
      : folder_(testing::TempDir() + "/differential-" + plugin + "-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    RunnerOptions options;
    options.plugin_path = KV_BUILD_DIR "/lib/" + plugin;
    options.executable = KV_BUILD_DIR "/bin/kverify";
    options.folder = folder_;
    runner_.emplace(CaseRunner::start(options).value());
  }
  ~Side() { std::filesystem::remove_all(folder_); }

  Observation observe(const Case& c) {
    Observation seen{.plugin = runner_->hello().plugin, .ops = {}, .end = {}};
    EXPECT_TRUE(runner_->submit(c).ok());
    for (;;) {
      CaseRunner::Event event = runner_->next().value();
      if (auto* end = std::get_if<RunEnd>(&event)) {
        seen.end = std::move(*end);
        return seen;
      }
      seen.ops.push_back(std::get<OpObservation>(std::move(event)));
    }
  }
  const OfferSet& offered() const { return runner_->hello().offered; }

 private:
  std::string folder_;
  std::optional<CaseRunner> runner_;
};

class Differential : public testing::Test {
 protected:
  Case drawn(uint64_t number) const {
    PhiloxSource choices(kSeed, number);
    return draw(choices, {.variants = {}, .offered = both_});
  }

  Side fused_{"libkvattn_plugin.so"}, baseline_{"libkvattn_baseline_plugin.so"};
  const OfferSet both_{fused_.offered().bits() & baseline_.offered().bits()};
};

TEST_F(Differential, BothConform) {
  uint64_t judged = 0, differ = 0;
  for (uint64_t i = 0; i < kCases; ++i) {
    const Case c = drawn(i);
    const Observation a = fused_.observe(c), b = baseline_.observe(c);
    const Verdict fused = judge_observation(c, a), baseline = judge_observation(c, b);
    for (const Verdict* v : {&fused, &baseline}) {
      EXPECT_TRUE(v->outcome == Outcome::kPass || v->outcome == Outcome::kVacuous)
          << "case " << i << ": " << v->message;
    }
    judged += fused.outcome == Outcome::kPass && baseline.outcome == Outcome::kPass;
    for (size_t op = 0; op < a.ops.size() && op < b.ops.size(); ++op) {
      if (a.ops[op].layers.empty()) continue;
      differ += a.ops[op].layers[0].output != b.ops[op].layers.at(0).output;
    }
  }
  EXPECT_GE(judged, kCases * 3 / 4);
  EXPECT_GT(differ, 0u) << "the two are the same code";
}

// What the check above is worth: the same observation with one output off by a quarter.
TEST_F(Differential, AWrongBaselineIsFound) {
  uint64_t wrong = 0, found = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    const Case c = drawn(i);
    Observation seen = baseline_.observe(c);
    if (c.shape.output_dtype != DType::kF32 || judge_observation(c, seen).outcome != Outcome::kPass)
      continue;
    for (OpObservation& op : seen.ops) {
      if (op.layers.empty()) continue;
      float first = 0;
      std::memcpy(&first, op.layers[0].output.data(), sizeof first);
      first = first == 0 ? 1 : first * 1.25f;
      std::memcpy(op.layers[0].output.data(), &first, sizeof first);
      ++wrong;
      found += judge_observation(c, seen).outcome == Outcome::kFail;
      break;
    }
  }
  EXPECT_GT(wrong, 0u);
  EXPECT_GE(found * 10, wrong * 9);
}

}  // namespace
}  // namespace kv::props
