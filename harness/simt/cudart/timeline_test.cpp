#include "harness/simt/cudart/timeline.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kv::simt::cudart {
namespace {

/// Two streams of two items each, issued alternately: a1 b1 a2 b2.
struct TwoStreams {
  Timeline timeline;
  std::string order;
  WorkId a1, b1, a2, b2;

  TwoStreams() {
    a1 = add("a", {});
    b1 = add("b", {});
    a2 = add("A", {a1});
    b2 = add("B", {b1});
  }
  WorkId add(const char* name, std::vector<WorkId> after) {
    return timeline.add({.action = [this, name] { order += name; }, .after = std::move(after)});
  }
};

TEST(Timeline, RunsNothingUntilAsked) {
  TwoStreams t;
  EXPECT_EQ(t.order, "");
  EXPECT_EQ(t.timeline.pending(), 4u);
}

TEST(Timeline, RunsOnlyWhatTheTargetNeeds) {
  TwoStreams t;
  t.timeline.complete({{t.a2}});
  EXPECT_EQ(t.order, "aA");
  EXPECT_TRUE(t.timeline.is_done(t.a1));
  EXPECT_FALSE(t.timeline.is_done(t.b1));
}

TEST(Timeline, SeedZeroReversesUnorderedWork) {
  TwoStreams t;
  t.timeline.complete_all();
  EXPECT_EQ(t.order, "bBaA");
}

TEST(Timeline, AnEdgeIsObeyedUnderEverySeed) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    TwoStreams t;
    t.timeline.set_seed(seed);
    t.timeline.complete_all();
    EXPECT_LT(t.order.find('a'), t.order.find('A')) << seed;
    EXPECT_LT(t.order.find('b'), t.order.find('B')) << seed;
    orders.insert(t.order);
  }
  EXPECT_EQ(orders.size(), 6u) << "each of the six legal orders is met by some seed";
}

TEST(Timeline, SameSeedSameOrder) {
  TwoStreams first, second;
  first.timeline.set_seed(5);
  second.timeline.set_seed(5);
  first.timeline.complete_all();
  second.timeline.complete_all();
  EXPECT_EQ(first.order, second.order);
}

TEST(Timeline, StepMakesProgressByOne) {
  TwoStreams t;
  t.timeline.step({{t.a2}});
  EXPECT_EQ(t.order, "a");
  t.timeline.step({{t.a2}});
  EXPECT_EQ(t.order, "aA");
  t.timeline.step({{t.a2}});
  EXPECT_EQ(t.order, "aA");
}

TEST(Timeline, AFullQueueRunsItsOldest) {
  Timeline timeline;
  size_t ran = 0;
  for (size_t i = 0; i < Timeline::kPendingMax + 3; ++i) timeline.add({.action = [&] { ++ran; }});
  EXPECT_EQ(ran, 3u);
  EXPECT_EQ(timeline.pending(), Timeline::kPendingMax);
}

TEST(Timeline, DroppedHostWorkKeepsTheOrderOfTheRest) {
  Timeline timeline;
  std::string order;
  const WorkId a = timeline.add({.action = [&] { order += "a"; }});
  const WorkId host =
      timeline.add({.action = [&] { order += "h"; }, .after = {a}, .touches_host = true});
  const WorkId b = timeline.add({.action = [&] { order += "b"; }, .after = {host}});
  timeline.drop_host_work();
  timeline.complete({{b}});
  EXPECT_EQ(order, "ab");
}

TEST(Timeline, AnActionMayAskForOtherWork) {
  Timeline timeline;
  std::string order;
  const WorkId a = timeline.add({.action = [&] { order += "a"; }});
  timeline.add({.action = [&] {
    timeline.complete({{a}});
    order += "b";
  }});
  timeline.complete_all();
  EXPECT_EQ(order, "ab");
}

}  // namespace
}  // namespace kv::simt::cudart
