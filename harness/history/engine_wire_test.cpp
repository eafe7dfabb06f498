#include "harness/history/engine_wire.h"

#include <gtest/gtest.h>

#include "harness/core/philox.h"

namespace kv {
namespace {

std::vector<EngineRequest> requests() {
  const call::Admit admit{.request = RequestId(1), .owner = 2, .tokens = {3, 4}, .slots_max = 9};
  const call::Step step{.rows = {{.request = RequestId(1),
                                  .handle = 7,
                                  .append = 1,
                                  .dtype = DType::kBf16,
                                  .tokens = {5},
                                  .tree_parents = {-1}}},
                        .draft = true};
  std::vector<EngineRequest> all = {
      request::Create{"{}"},
      request::Read{CacheKind::kDraft, {{.by_page = true, .holder = 3, .slot = 2, .layer = 1}}},
      request::TakeOutputs{5}};
  for (const Call& call : std::initializer_list<Call>{
           admit, step, call::Complete{4}, call::Fork{RequestId(1), RequestId(2)},
           call::Reorder{{RequestId(1)}, {RequestId(1)}}, call::Truncate{RequestId(1), 3},
           call::Shift{RequestId(1), 1, 2}, call::Cancel{RequestId(1)}, call::Finish{RequestId(1)},
           call::Preempt{RequestId(1), true}, call::Resume{RequestId(1)}, call::Evict{3},
           call::Defrag{}, call::Save{RequestId(1)},
           call::Restore{admit, {std::byte{1}, std::byte{2}}}, call::FailAllocation{2}}) {
    all.push_back(request::Perform{call});
  }
  return all;
}

EngineReply reply() {
  EngineReply r;
  r.error = bad_input("snapshot: no");
  r.answer = {.status = CallStatus::kExhausted, .message = "no room", .handle = 5, .saved = {{}}};
  r.target = EngineState{.page_count = 2, .references = {1, 0}, .free = {1}};
  r.target->requests.push_back({.request = RequestId(3), .tables = {{0, -1}, {}}});
  r.target->prefixes.push_back({.parent = -1, .tokens = {9}, .pages = {0}});
  r.slots.push_back({.status = CallStatus::kRefused, .key = {std::byte{7}}, .value = {}});
  r.outputs = {.outputs = {{std::byte{1}, std::byte{2}}, {}}, .lses = {{1.5f}, {}}};
  r.device_findings = {"a race"};
  return r;
}

TEST(EngineWire, RoundTrips) {
  for (const EngineRequest& request : requests()) {
    const auto bytes = encode(request);
    const auto back = decode_engine_request(bytes);
    ASSERT_TRUE(back) << request.index();
    EXPECT_EQ(encode(*back), bytes);
  }
  const auto bytes = encode(reply());
  const auto back = decode_engine_reply(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), bytes);
  EXPECT_EQ(back->target->requests, reply().target->requests);
}

TEST(EngineWire, WhatIsCutOrLongerIsNothing) {
  auto bytes = encode(reply());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decode_engine_reply(std::span(bytes).first(cut))) << cut;
  }
  bytes.push_back({});
  EXPECT_FALSE(decode_engine_reply(bytes));
}

// Whatever the bytes are, decoding ends, and takes no more memory than a multiple of them.
TEST(EngineWire, DamagedBytesAreHarmless) {
  const auto sound = encode(reply());
  for (uint64_t i = 0; i < 5000; ++i) {
    auto bytes = sound;
    const Philox random{i};
    for (uint64_t k = 0; k <= i % 4; ++k) {
      const uint64_t word = random.word(1, k);
      bytes[word % bytes.size()] = static_cast<std::byte>(word >> 56);
    }
    (void)decode_engine_reply(bytes);
    (void)decode_engine_request(bytes);
  }
}

}  // namespace
}  // namespace kv
