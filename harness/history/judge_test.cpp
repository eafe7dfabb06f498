// Each fault of the plain engine is found, by the check that its class is for; the engine without a
// fault is left in peace on the same histories.
#include "harness/history/judge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/gen/draw_history.h"
#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

constexpr uint64_t kHistories = 400;

Case history(uint64_t index) {
  PhiloxSource choices(5, index);
  return draw_history(choices, {});
}

std::string told(const HistoryFinding& found) {
  return std::string(check_name(found.check)) + " in ops[" + std::to_string(found.op_index) +
         "], " + found.operation + ": " + found.message;
}

/// Does no step, and refuses those that are not lawful all the same.
class Declining : public Engine {
 public:
  explicit Declining(const Case& c) : inner_(c, Fault::kNone) {}
  Answer perform(const Call& call) override {
    PlainEngine trial = inner_;
    const bool is_step = std::holds_alternative<call::Step>(call);
    if (!is_step || trial.perform(call).status != CallStatus::kOk) return inner_.perform(call);
    return {.status = CallStatus::kUnsupported, .message = "no steps"};
  }
  Result<EngineState> snapshot(CacheKind cache) override { return inner_.snapshot(cache); }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    return inner_.read(cache, places);
  }

 private:
  PlainEngine inner_;
};

/// Fails when what an engine does not do is neither counted nor told from what it does.
TEST(Judge, WhatAnEngineDeclinesIsCounted) {
  HistoryStats declined, done;
  for (uint64_t i = 0; i < 20; ++i) {
    const Case c = history(i);
    Declining declining(c);
    const HistoryResult without = run_history(c, declining, {});
    EXPECT_FALSE(without.finding) << told(*without.finding);
    declined += without.stats;
    PlainEngine plain(c, Fault::kNone);
    done += run_history(c, plain, {}).stats;
  }
  EXPECT_EQ(declined.steps, 0U);
  EXPECT_GT(declined.not_offered, 100U);
  EXPECT_EQ(done.not_offered, 0U);
  EXPECT_GT(done.steps, 100U);
}

/// Its device says something at the fourth call, or when bytes are read after it.
class Reporting final : public Engine {
 public:
  Reporting(const Case& c, DeviceReport report, bool late)
      : inner_(c, Fault::kNone), report_(std::move(report)), is_late_(late) {}
  Answer perform(const Call& call) override {
    ++calls_;
    return inner_.perform(call);
  }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    was_read_ = calls_ >= 4;
    if (was_read_ && is_late_) return std::vector<SlotBytes>(places.size());  // no bytes
    return inner_.read(cache, places);
  }
  Result<EngineState> snapshot(CacheKind cache) override { return inner_.snapshot(cache); }
  DeviceReport take_device_report() override {
    if (calls_ < 4 || (is_late_ && !was_read_)) return {};
    return std::exchange(report_, {});
  }

 private:
  PlainEngine inner_;
  DeviceReport report_;
  bool is_late_, was_read_ = false;
  int calls_ = 0;
};

// Fails when code that the device does not know is held against the engine, or hides a fault; or
// when bytes are blamed for what the device said while they were read.
TEST(Judge, WhatTheDeviceSaysDecides) {
  Case c;
  c.engine = EngineLevel{.context_limit = 64};
  c.ops = {op::Admit{.prompt_tokens = 3}, op::Step{.rows = {{.append = 3}}}, op::Evict{1},
           op::Evict{1}};
  const auto check_of = [&c](const DeviceReport& report, bool late) {
    Reporting engine(c, report, late);
    const HistoryResult result = run_history(c, engine, {.everything_every = 1});
    if (!result.finding) return std::string("nothing");
    return std::string(check_name(result.finding->check)) + ": " + result.finding->message;
  };
  for (const bool late : {false, true}) {
    EXPECT_EQ(check_of({.unsupported = "wgmma"}, late), "unsupported: wgmma") << late;
    EXPECT_EQ(check_of({.findings = {"a race"}}, late), "device: a race") << late;
    EXPECT_EQ(check_of({.findings = {"a race"}, .unsupported = "wgmma"}, late), "device: a race")
        << late;
  }
  EXPECT_EQ(check_of({}, false), "nothing");
}

struct Planted {
  Fault fault;
  std::vector<CheckClass> expected;  // of the first finding of a history
};

class PlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsFoundByItsCheck) {
  std::set<CheckClass> by;
  const auto complete = [&by] {
    const auto& expected = GetParam().expected;
    return std::all_of(expected.begin(), expected.end(),
                       [&by](CheckClass check) { return by.contains(check); });
  };
  for (uint64_t i = 0; i < kHistories && !complete(); ++i) {
    const Case c = history(i);
    PlainEngine engine(c, GetParam().fault);
    const HistoryResult result = run_history(c, engine, {});
    if (result.finding) by.insert(result.finding->check);
  }
  ASSERT_FALSE(by.empty()) << "no history of " << kHistories << " found it";
  for (const CheckClass check : GetParam().expected) {
    EXPECT_TRUE(by.contains(check)) << check_name(check);
  }
  std::string names;
  for (const CheckClass check : by) names += std::string(check_name(check)) + "; ";
  RecordProperty("found_by", names);
}

using enum CheckClass;
INSTANTIATE_TEST_SUITE_P(
    Judge, PlantedFault,
    testing::Values(
        Planted{Fault::kLeakOnCancel, {kPartition}}, Planted{Fault::kFreeTwice, {kPartition}},
        Planted{Fault::kCountTooHigh, {kReferences}}, Planted{Fault::kWriteSharedTail, {kWriteSet}},
        Planted{Fault::kTruncateNothing, {kLengths}}, Planted{Fault::kForgetOffset, {kLengths}},
        Planted{Fault::kAcceptOldHandle, {kAnswer}}, Planted{Fault::kAcceptPastLimit, {kAnswer}},
        Planted{Fault::kRefuseSilently, {kAnswer}}, Planted{Fault::kHalfStep, {kLengths}},
        Planted{Fault::kNoFence, {kFence}}, Planted{Fault::kPublishOtherTokens, {kIndex}},
        Planted{Fault::kPublishWithoutPage, {kIndex}},
        Planted{Fault::kWriteOtherToken, {kProvenance}}, Planted{Fault::kValueIsKey, {kProvenance}},
        Planted{Fault::kLayersSwapped, {kProvenance}},
        Planted{Fault::kReorderOnlyTables, {kProvenance}},
        Planted{Fault::kReorderNothing, {kLengths}},
        Planted{Fault::kInversePermutation, {kLengths}},
        Planted{Fault::kShiftKeepsBytes, {kProvenance}},
        Planted{Fault::kSwapLosesPage, {kProvenance}}, Planted{Fault::kRestoreAnything, {kAnswer}},
        Planted{Fault::kNoRoom, {kProgress}}, Planted{Fault::kStuckBatchSlot, {kLengths}},
        Planted{Fault::kLeakBatchSlot, {kProgress}}, Planted{Fault::kAdmitAnything, {kAnswer}},
        Planted{Fault::kPublishSpeculation, {kIndex}}, Planted{Fault::kOtherPairing, {kProvenance}},
        Planted{Fault::kTurnAfterResume, {kProvenance}},
        Planted{Fault::kTurnAfterRollback, {kProvenance}},
        Planted{Fault::kStaleScale, {kProvenance}},
        Planted{Fault::kScaleOfFirstPage, {kProvenance}},
        Planted{Fault::kMoveRoundsAgain, {kProvenance}}));

TEST(Judge, IsSilentOnACorrectEngine) {
  HistoryStats all;
  for (uint64_t i = 0; i < kHistories; ++i) {
    const Case c = history(i);
    PlainEngine engine(c, Fault::kNone);
    const HistoryResult result = run_history(c, engine, {});
    ASSERT_FALSE(result.finding) << "history " << i << ": " << told(*result.finding);
    all += result.stats;
  }
  EXPECT_GT(all.succeeded, all.calls / 2);
  EXPECT_GT(all.refused, 0u);
  EXPECT_GT(all.exhausted, 0u);
  for (size_t kind = 0; kind < kOpKinds; ++kind) EXPECT_GT(all.met[kind], 0u) << kind;
}

TEST(Judge, SaysTheSameTwice) {
  for (uint64_t i = 0; i < 20; ++i) {
    const Case c = history(i);
    PlainEngine first(c, Fault::kWriteOtherToken), second(c, Fault::kWriteOtherToken);
    const auto a = run_history(c, first, {}), b = run_history(c, second, {});
    ASSERT_EQ(a.finding.has_value(), b.finding.has_value());
    if (!a.finding) continue;
    EXPECT_EQ(told(*a.finding), told(*b.finding));
  }
}

}  // namespace
}  // namespace kv
