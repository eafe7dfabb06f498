// The structural checks on forged states: each fires on its own forgery, and on nothing else.
#include "harness/history/state_checks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "harness/engine/damaged_test.h"
#include "harness/engine/engine_wire.h"
#include "harness/history/judge.h"
#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

constexpr RequestId kA(0), kB(1), kC(2);

Case some_case() {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 4;
  c.shape.query_heads = c.shape.kv_heads = 1;
  c.pool.page_slots = 4;
  c.pool.page_count = 16;
  c.pool.overcommit = 8;
  c.engine = EngineLevel{.host_page_count = 4, .context_limit = 32};
  c.ops = {op::Admit{.request = kA, .prompt_tokens = 6, .position_offset = 3},
           op::Admit{.request = kB, .prompt_tokens = 5},
           op::Admit{.request = kC, .prompt_tokens = 4},
           op::Step{.rows = {{.request = kA, .append = 6},
                             {.request = kB, .append = 5},
                             {.request = kC, .append = 4}}},
           op::Preempt{kC, true},
           op::Step{.rows = {{.request = kA, .append = 1}}}};
  return c;
}

class Forged : public testing::Test {
 protected:
  Forged() : case_(some_case()), engine_(case_, Fault::kNone), model_(case_) {
    for (const Op& op : case_.ops) {
      const auto planned = model_.plan(op);
      before_ = *engine_.snapshot(CacheKind::kTarget);
      model_.apply(*planned, engine_.perform(planned->call));
      if (const auto* step = std::get_if<call::Step>(&planned->call)) step_ = *step;
    }
    state_ = *engine_.snapshot(CacheKind::kTarget);
  }

  /// The classes that fire, in the judge's order.
  std::vector<CheckClass> fired() const {
    std::vector<CheckClass> all;
    for (const MaybeFinding& found :
         {check_references(state_), check_partition(state_),
          check_write_set(before_, state_, step_), check_lengths(state_, model_, false),
          check_index_shape(state_, {})}) {
      if (found) all.push_back(found->check);
    }
    return all;
  }
  RequestState& request(RequestId id) {
    for (RequestState& r : state_.requests) {
      if (r.request == id) return r;
    }
    ADD_FAILURE();
    return state_.requests[0];
  }
  uint32_t page(RequestId id, size_t index) {
    return static_cast<uint32_t>(request(id).tables[0][index]);
  }

  Case case_;
  PlainEngine engine_;
  Model model_;
  EngineState before_, state_;
  call::Step step_;
};

using Classes = std::vector<CheckClass>;
using enum CheckClass;

TEST_F(Forged, NothingFiresOnATrueState) { EXPECT_EQ(fired(), Classes{}); }

TEST_F(Forged, CountsAreRecounted) {
  ++state_.references[page(kB, 0)];
  EXPECT_EQ(fired(), Classes{kReferences});
}

TEST_F(Forged, APageInTwoTablesHasTwoHolders) {
  request(kB).tables[0][1] = static_cast<int32_t>(page(kA, 0));
  EXPECT_EQ(fired(), Classes{kReferences});  // and the page that it held has none
}

TEST_F(Forged, APageBeyondThePool) {
  request(kB).tables[0][1] = 16;
  EXPECT_EQ(fired()[0], kReferences);
}

TEST_F(Forged, APageIsLost) {
  state_.free.pop_back();
  EXPECT_EQ(fired(), Classes{kPartition});
}

TEST_F(Forged, APageIsFreeTwice) {
  state_.free.push_back(state_.free.front());
  EXPECT_EQ(fired(), Classes{kPartition});
}

TEST_F(Forged, APageIsFreeAndOwned) {
  state_.free.push_back(page(kA, 0));
  EXPECT_EQ(fired()[0], kPartition);
}

TEST_F(Forged, AHostPageIsLostOrHeldTwice) {
  const EngineState sound = state_;
  state_.host_free.pop_back();
  EXPECT_EQ(fired(), Classes{kPartition});
  state_ = sound;
  state_.host_free.push_back(page(kC, 0));
  EXPECT_EQ(fired(), Classes{kPartition});
}

TEST_F(Forged, AWrittenPageIsShared) {
  state_.references[page(kA, 1)] = 2;
  EXPECT_EQ(fired(), (Classes{kReferences, kWriteSet}));
}

TEST_F(Forged, AWrittenPageWasPublished) {
  PrefixState prefix{.tokens = {1, 2, 3, 4}, .pages = {static_cast<int32_t>(page(kA, 1))}};
  before_.prefixes.push_back(prefix);
  EXPECT_EQ(fired(), Classes{kWriteSet});
}

TEST_F(Forged, WhoExistsAndHowLongItIs) {
  const EngineState sound = state_;
  const std::function<void()> forgeries[] = {
      [&] { request(kA).length += 1; },
      [&] { request(kA).position_offset = 0; },
      [&] { request(kA).owner = 9; },
      [&] { request(kA).handle = 99; },
      [&] { request(kA).side_input = 1; },
      [&] { request(kA).batch_slot = request(kB).batch_slot; },
      [&] { request(kA).batch_slot = -1; },
      [&] { request(kC).batch_slot = 3; },
      [&] { request(kC).life = Life::kPreempted; },
      [&] { state_.requests.pop_back(); },
      [&] { request(kC).request = RequestId(77); },
      [&] { state_.in_flight.push_back(9); }};
  for (size_t i = 0; i < std::size(forgeries); ++i) {
    state_ = sound;
    forgeries[i]();
    const auto found = check_lengths(state_, model_, false);
    ASSERT_TRUE(found) << i;
    EXPECT_EQ(found->check, kLengths) << i;
  }
}

TEST_F(Forged, ASlotThatEveryWindowSeesMustBeThere) {
  request(kA).tables[0][0] = kNoPage;
  const auto found = check_lengths(state_, model_, false);
  ASSERT_TRUE(found);
  EXPECT_NE(found->message.find("is gone"), std::string::npos) << found->message;
}

TEST_F(Forged, TheIndexNamesPagesOnceAndHeldOnes) {
  const EngineState sound = state_;
  const size_t first = state_.prefixes.size();
  const auto publish = [&](uint32_t page, int32_t parent) {
    state_.prefixes.push_back({.parent = parent,
                               .side_input = 5,
                               .tokens = {9, 9, 9, 9},
                               .pages = {static_cast<int32_t>(page)}});
  };
  publish(state_.free[0], -1);
  EXPECT_EQ(fired(), Classes{kIndex});
  state_ = sound;
  publish(page(kA, 1), -1);
  EXPECT_EQ(fired(), Classes{});
  publish(page(kA, 1), -1);
  EXPECT_EQ(fired(), Classes{kIndex});
  state_ = sound;
  publish(page(kA, 1), static_cast<int32_t>(first) - 1);  // side input 5 below one with 0
  EXPECT_EQ(fired(), Classes{kIndex});
  state_ = sound;
  publish(page(kA, 1), -1);
  EXPECT_TRUE(check_index_shape(state_, {page(kA, 1)}));  // a step in flight writes it
  state_ = sound;
  state_.free.pop_back();
  state_.cached.push_back(sound.free.back());
  EXPECT_EQ(fired(), Classes{kIndex});  // cached, but not to be found
}

// Silent: somebody else has settled the page, and need not hold it any more.
TEST_F(Forged, SpeculativeSlotsAreNotPublished) {
  const auto tail = static_cast<int32_t>(page(kA, 1));  // of slots 4 to 7, of which 7 are settled
  state_.prefixes.push_back({.tokens = {9, 9, 9, 9}, .pages = {tail}});
  const auto found = check_settled(before_, state_, model_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->check, kIndex);
  for (RequestState& r : before_.requests) {
    if (r.request == kB) r.tables[0][0] = tail;
  }
  EXPECT_FALSE(check_settled(before_, state_, model_));
  before_ = state_;
  EXPECT_FALSE(check_settled(before_, state_, model_));  // it was published already
}

TEST_F(Forged, DifferencesAreNamed) {
  EXPECT_EQ(first_difference(state_, state_), "");
  EngineState other = state_;
  std::swap(other.free[0], other.free[1]);
  EXPECT_EQ(first_difference(state_, other), "");
  other.requests[0].length = 1;
  EXPECT_EQ(first_difference(state_, other), "the requests");
  other = state_;
  other.free.pop_back();
  EXPECT_EQ(first_difference(state_, other), "the free pages");
}

TEST(Snapshot, IsCopiedWithoutTrust) {
  uint32_t counts[2] = {0, 0};
  kv_snapshot snapshot = {};
  snapshot.struct_bytes = sizeof snapshot;
  snapshot.page_count = 2;
  snapshot.group_count = 1;
  snapshot.page_slots = 4;
  snapshot.reference_counts = counts;
  const auto copy = [](const kv_snapshot& s) {
    uint64_t numbers = 0;
    KnownPrefixes known(numbers);
    return copy_snapshot(s, known);
  };
  EXPECT_TRUE(copy(snapshot).ok());
  for (const std::function<void(kv_snapshot&)>& harm :
       std::vector<std::function<void(kv_snapshot&)>>{
           [](kv_snapshot& s) { s.reference_counts = nullptr; },
           [](kv_snapshot& s) { s.free_count = 3; },
           [](kv_snapshot& s) { s.page_count = UINT32_MAX; },
           [](kv_snapshot& s) { s.request_count = 1; },
           [](kv_snapshot& s) { s.prefix_count = UINT32_MAX; },
           [](kv_snapshot& s) { s.group_count = 0; }, [](kv_snapshot& s) { s.page_slots = 0; }}) {
    kv_snapshot harmed = snapshot;
    harm(harmed);
    EXPECT_FALSE(copy(harmed).ok());
  }
}

// Kills: a copy that takes the structs of a plugin that knows fewer fields, or more, for its own.
TEST(Snapshot, ArraysAreAsWideAsTheirFirstStructSays) {
  const uint32_t counts[1] = {0};
  const int32_t page = 0;
  std::vector<uint64_t> tokens = {5, 6};
  kv_snapshot snapshot = {};
  snapshot.page_count = snapshot.group_count = snapshot.page_slots = 1;
  snapshot.reference_counts = counts;
  snapshot.prefix_count = 2;
  constexpr size_t kLeast = offsetof(kv_snapshot_prefix, identity);
  for (const size_t stride : {kLeast - 8, kLeast, sizeof(kv_snapshot_prefix), size_t{64}}) {
    std::vector<std::byte> bytes(2 * stride + sizeof(kv_snapshot_prefix), std::byte{0xEE});
    for (uint64_t i = 0; i < 2; ++i) {
      const kv_snapshot_prefix prefix = {.struct_bytes = static_cast<uint32_t>(stride),
                                         .parent = static_cast<int32_t>(i) - 1,
                                         .tokens = &tokens[i],
                                         .pages = &page};
      std::memcpy(bytes.data() + i * stride, &prefix, std::min(stride, sizeof prefix));
    }
    snapshot.prefixes = reinterpret_cast<const kv_snapshot_prefix*>(bytes.data());
    uint64_t numbers = 0;
    KnownPrefixes known(numbers);
    const Result<EngineState> state = copy_snapshot(snapshot, known);
    EXPECT_EQ(state.ok(), stride >= kLeast) << stride;
    if (!state.ok()) continue;
    EXPECT_EQ(state->prefixes[1].tokens.all()[0], 6u) << stride;
    EXPECT_EQ(numbers, 0u) << stride;  // no identity was told
  }
}

// Kills: an engine that gives one identity to two prefixes, and a copy that trusts it for ever.
TEST(Snapshot, AnIdentityStandsForTheSameTokens) {
  for (const uint32_t prefixes : {1u, 400u}) {
    uint64_t numbers = 0;
    KnownPrefixes known(numbers);
    const uint32_t page_slots = 256;
    std::vector<uint64_t> tokens(page_slots, 5);
    const uint32_t counts[1] = {0};
    const int32_t page = 0;
    std::vector<kv_snapshot_prefix> list;
    for (uint64_t i = 1; i <= prefixes; ++i) {
      list.push_back({.struct_bytes = sizeof(kv_snapshot_prefix),
                      .parent = -1,
                      .side_input = 0,
                      .position_offset = 0,
                      .tokens = tokens.data(),
                      .pages = &page,
                      .identity = i});
    }
    kv_snapshot snapshot = {};
    snapshot.page_count = snapshot.group_count = 1;
    snapshot.page_slots = page_slots;
    snapshot.reference_counts = counts;
    snapshot.prefixes = list.data();
    snapshot.prefix_count = prefixes;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(copy_snapshot(snapshot, known).ok());
    EXPECT_EQ(numbers, prefixes);  // each was copied once
    tokens.back() = 6;
    int until = 0;
    while (copy_snapshot(snapshot, known).ok()) ASSERT_LT(++until, 64);
    EXPECT_TRUE(prefixes > 1 || until == 0);
  }
}

// Kills: a check that indexes by a number which the shape of a state does not bound. In the judge's
// order: each may rely on what those before it have not found.
TEST_F(Forged, WhateverHasTheShapeOfAStateCanBeChecked) {
  PagesTold told;
  const auto sound = encode(EngineReply{.target = state_}, told);
  int checked = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    PagesHeard heard;
    const auto back = decode_engine_reply(damaged(sound, i), heard);
    if (!back || !back->target || !check_shape(*back->target).ok()) continue;
    ++checked;
    const EngineState& damaged = *back->target;
    if (check_references(damaged) || check_partition(damaged)) continue;
    (void)check_write_set(before_, damaged, step_);
    (void)check_index_shape(damaged, {0, 1});
    (void)first_difference(damaged, state_);
  }
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace kv
