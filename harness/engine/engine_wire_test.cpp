#include "harness/engine/engine_wire.h"

#include <gtest/gtest.h>

#include "harness/engine/damaged_test.h"
#include "harness/engine/engine_state.h"

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
      request::Read{CacheKind::kDraft,
                    {{.by_page = true, .holder = 3, .slot = 2, .layer = 1, .slots = 5}}},
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
  r.target = EngineState{
      .page_count = 2, .group_count = 2, .page_slots = 1, .references = {1, 0}, .free = {1}};
  r.target->requests.push_back({.request = RequestId(3), .tables = {{0, -1}, {}}});
  r.target->prefixes.push_back({.parent = -1, .tokens = {9}, .pages = {0, -1}});
  r.slots.push_back({.status = CallStatus::kRefused,
                     .key = {std::byte{7}},
                     .value = {},
                     .key_scales = {0.5f},
                     .value_scales = {2.0f, 3.0f}});
  r.shift_turns = 1;
  r.outputs = {.outputs = {{std::byte{1}, std::byte{2}}, {}}, .lses = {{1.5f}, {}}};
  r.device = {.findings = {"a race"}, .unsupported = "wgmma"};
  return r;
}

std::vector<std::byte> encode_fresh(const EngineReply& reply) {
  PagesTold told;
  return encode(reply, told);
}
std::optional<EngineReply> decode_fresh(std::span<const std::byte> payload) {
  PagesHeard heard;
  return decode_engine_reply(payload, heard);
}

TEST(EngineWire, RoundTrips) {
  for (const EngineRequest& request : requests()) {
    const auto bytes = encode(request);
    const auto back = decode_engine_request(bytes);
    ASSERT_TRUE(back) << request.index();
    EXPECT_EQ(encode(*back), bytes);
  }
  const auto bytes = encode_fresh(reply());
  const auto back = decode_fresh(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode_fresh(*back), bytes);
  EXPECT_EQ(back->target->requests, reply().target->requests);
  EXPECT_EQ(back->slots[0].key_scales, reply().slots[0].key_scales);
  EXPECT_EQ(back->slots[0].value_scales, reply().slots[0].value_scales);
  EXPECT_EQ(back->shift_turns, 1);
  EXPECT_EQ(back->device.findings, reply().device.findings);
  EXPECT_EQ(back->device.unsupported, "wgmma");
}

TEST(EngineWire, WhatIsCutOrLongerIsNothing) {
  auto bytes = encode_fresh(reply());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decode_fresh(std::span(bytes).first(cut))) << cut;
  }
  bytes.push_back({});
  EXPECT_FALSE(decode_fresh(bytes));
}

EngineReply reply_with_pages(std::vector<PageTokens> pages) {
  EngineReply r;
  r.target = EngineState{};
  for (PageTokens& page : pages) r.target->prefixes.push_back({.tokens = std::move(page)});
  return r;
}

// Kills: tokens that cross again with every reply, or that are mixed up between pages.
TEST(EngineWire, TokensOfANumberedPageCrossOnce) {
  const PageTokens a({1, 2, 3, 4}, 1), b({5, 6, 7, 8}, 2), c({9, 9, 9, 9}, 3);
  PagesTold told;
  PagesHeard heard;
  const auto hear = [&](const EngineReply& reply) {
    const auto bytes = encode(reply, told);
    const auto back = decode_engine_reply(bytes, heard);
    EXPECT_TRUE(back && back->target->prefixes == reply.target->prefixes);
    return bytes.size();
  };
  const size_t first = hear(reply_with_pages({a, b}));
  const size_t second = hear(reply_with_pages({b, a}));
  EXPECT_EQ(first - second, 2 * (4 + 1) * sizeof(uint64_t));
  for (int i = 0; i < 200; ++i) hear(reply_with_pages({c, a}));
  EXPECT_LE(heard.pages.size(), 4u);
  hear(reply_with_pages({a}));
}

TEST(EngineWire, AReplyThatNamesAPageNeverToldIsNothing) {
  PagesTold told{.last_number = 7};
  PagesHeard heard;
  const auto bytes = encode(reply_with_pages({PageTokens({1}, 5)}), told);
  EXPECT_FALSE(decode_engine_reply(bytes, heard));
}

// A foreign message may not reach a terminal or a report as it is.
TEST(EngineWire, MessagesArePrintableAndCasesAreWhole) {
  EngineReply foreign = reply();
  foreign.answer.message = "\x1b[2J\xff";
  const auto back = decode_fresh(encode_fresh(foreign));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->answer.message.find('\x1b'), std::string::npos);
  EXPECT_EQ(back->answer.message.find('\xff'), std::string::npos);
  const auto create = decode_engine_request(encode(EngineRequest(request::Create{"{\n\t\"a\"}"})));
  ASSERT_TRUE(create);
  EXPECT_EQ(std::get<request::Create>(*create).case_text, "{\n\t\"a\"}");
}

template <class Change>
void expect_misshapen(Change change) {
  EngineState state = *reply().target;
  ASSERT_TRUE(check_shape(state).ok()) << check_shape(state).error().message;
  change(state);
  EXPECT_FALSE(check_shape(state).ok());
}

TEST(EngineState, LengthsThatTheChecksIndexByMustAgree) {
  expect_misshapen([](EngineState& s) { s.references.pop_back(); });
  expect_misshapen([](EngineState& s) { ++s.page_count; });
  expect_misshapen([](EngineState& s) { s.host_page_count = UINT32_MAX; });
  expect_misshapen([](EngineState& s) { s.group_count = 0; });
  expect_misshapen([](EngineState& s) { s.page_slots = 0; });
  expect_misshapen([](EngineState& s) { s.requests[0].tables.pop_back(); });
  expect_misshapen([](EngineState& s) { s.prefixes[0].tokens = PageTokens({9, 1}); });
  expect_misshapen([](EngineState& s) { s.prefixes[0].pages.clear(); });
  expect_misshapen([](EngineState& s) { s.prefixes[0].parent = 0; });
  expect_misshapen([](EngineState& s) { s.prefixes[0].parent = -2; });
}

// Whatever the bytes are, decoding ends and takes no more memory than a multiple of them.
TEST(EngineWire, DamagedBytesAreHarmless) {
  const auto sound = encode_fresh(reply());
  for (uint64_t i = 0; i < 5000; ++i) {
    const auto bytes = damaged(sound, i);
    if (const auto back = decode_fresh(bytes); back && back->target)
      (void)check_shape(*back->target);
    (void)decode_engine_request(bytes);
  }
}

}  // namespace
}  // namespace kv
