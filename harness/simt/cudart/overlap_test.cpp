#include "harness/simt/cudart/overlap.h"

#include <gtest/gtest.h>

namespace kv::simt::cudart {
namespace {

using Ids = std::vector<uint64_t>;

/// Issues an item after `before`.
void issue(Overlap& overlap, uint64_t id, const Ids& before) { overlap.issued(id, before); }

TEST(Overlap, OneStreamIsNeverTracked) {
  Overlap overlap;
  issue(overlap, 1, {});
  issue(overlap, 2, {1});
  issue(overlap, 3, {2});
  for (const uint64_t id : {1, 2, 3}) {
    const WorkOrder order = overlap.runs(id);
    EXPECT_FALSE(order.tracked) << id;
    EXPECT_EQ(order.unordered, Ids{}) << id;
  }
}

TEST(Overlap, TwoStreamsWithoutAnEventOverlap) {
  Overlap overlap;
  issue(overlap, 1, {});
  issue(overlap, 2, {});
  issue(overlap, 3, {1});
  EXPECT_TRUE(overlap.runs(2).tracked);
  EXPECT_EQ(overlap.runs(1).unordered, Ids{2});
  EXPECT_EQ(overlap.runs(3).unordered, Ids{2});
}

TEST(Overlap, AnEventOrdersAllThatCameBeforeIt) {
  Overlap overlap;
  issue(overlap, 1, {});
  issue(overlap, 2, {1});
  issue(overlap, 3, {});      // another stream
  issue(overlap, 4, {3, 2});  // which now waits for the first
  issue(overlap, 5, {2});     // the first goes on
  overlap.runs(1);
  overlap.runs(2);
  EXPECT_EQ(overlap.runs(3).unordered, (Ids{1, 2}));
  EXPECT_EQ(overlap.runs(4).unordered, Ids{});
  EXPECT_EQ(overlap.runs(5).unordered, (Ids{3, 4}));
}

TEST(Overlap, WhatTheHostWaitedForIsOrdered) {
  Overlap overlap;
  issue(overlap, 1, {});
  issue(overlap, 2, {});
  overlap.runs(1);
  issue(overlap, 3, {});  // issued when 1 had run
  EXPECT_EQ(overlap.runs(3).unordered, Ids{});
  EXPECT_EQ(overlap.runs(2).unordered, (Ids{1, 3}));
}

TEST(Overlap, ForksJoinAgain) {
  Overlap overlap;
  issue(overlap, 1, {});
  issue(overlap, 2, {1});
  issue(overlap, 3, {1});
  issue(overlap, 4, {2, 3});
  overlap.runs(1);
  EXPECT_EQ(overlap.runs(3).unordered, Ids{});
  EXPECT_EQ(overlap.runs(2).unordered, Ids{3});
  EXPECT_EQ(overlap.runs(4).unordered, Ids{});
}

}  // namespace
}  // namespace kv::simt::cudart
