#include "harness/case/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/case/visibility.h"

namespace kv {
namespace {

op::Step one_row(op::StepRow row) { return {.rows = {std::move(row)}}; }

Case small_case(std::vector<Op> ops) {
  Case c;
  c.pool = {.page_slots = 4, .page_count = 8, .order = PageOrder::kIdentity};
  c.data.seed = 7;
  c.ops = std::move(ops);
  return c;
}

// The state after all operations, and the last step.
struct Walked {
  Timeline timeline;
  PlannedStep last;
};
Walked walk(const Case& c) {
  Result<Timeline> timeline = Timeline::create(c);
  EXPECT_TRUE(timeline.ok()) << timeline.error().message;
  Walked walked{std::move(timeline).value(), {}};
  for (uint32_t i = 0; i < c.ops.size(); ++i) walked.last = walked.timeline.apply(i);
  return walked;
}

std::string refusal(const Case& c) {
  const Result<Timeline> timeline = Timeline::create(c);
  return timeline.ok() ? "" : timeline.error().message;
}

std::vector<uint32_t> page_values(const std::vector<PageId>& pages) {
  std::vector<uint32_t> values;
  for (const PageId page : pages) values.push_back(page.value);
  return values;
}

TEST(Timeline, PlansARowAfterItsAppend) {
  const Case c = small_case({op::Admit{.request = RequestId(3), .prompt_tokens = 6},
                             one_row({.request = RequestId(3), .append = 5, .queries = 5}),
                             one_row({.request = RequestId(3), .append = 1, .queries = 1})});
  const Walked walked = walk(c);
  const PlannedRow& row = walked.last.rows.at(0);
  EXPECT_EQ(row.kv_length, 6u);
  EXPECT_EQ(row.append_slots, 1u);
  EXPECT_EQ(row.key_begin, 0u);
  EXPECT_EQ(row.key_end, 6u);
  EXPECT_EQ(query_slot(row, 0), 5);
  const Sequence& sequence = walked.timeline.sequence(RequestId(3));
  EXPECT_EQ(page_values(sequence.pages), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(sequence.slots[5].position, 5);
  EXPECT_EQ(sequence.slots[5].previous, sequence.slots[4].history);
  EXPECT_EQ(sequence.slots[0].previous, 0u);
}

TEST(Timeline, EveryTokenKnowsItsPositionAndTheTokenBeforeIt) {
  const Case c = small_case({op::Admit{.request = RequestId(3), .position_offset = -2},
                             one_row({.request = RequestId(3), .append = 9, .pad_left = 3}),
                             one_row({.request = RequestId(3), .append = 7, .pad_right = 2})});
  const Walked walked = walk(c);
  const auto& slots = walked.timeline.sequence(RequestId(3)).slots;
  ASSERT_EQ(slots.size(), 21u);
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool pad = i < 3 || i >= 19;
    EXPECT_EQ(slots[i].pad, pad) << i;
    const int64_t real_before = std::clamp<int64_t>(int64_t(i) - 3, 0, 16);
    EXPECT_EQ(slots[i].position, real_before - 2) << i;
    EXPECT_EQ(slots[i].previous, pad || i == 3 ? 0 : slots[i - 1].history) << i;
    EXPECT_NE(slots[i].history, 0u) << i;
  }
}

TEST(Timeline, PagesOfAFinishedRequestAreTakenAgainFirst) {
  Case c = small_case({op::Admit{.request = RequestId(0)}, op::Admit{.request = RequestId(1)},
                       one_row({.request = RequestId(0), .append = 8}),
                       one_row({.request = RequestId(1), .append = 1}), op::Finish{RequestId(0)},
                       one_row({.request = RequestId(1), .append = 4})});
  const Walked walked = walk(c);
  EXPECT_EQ(page_values(walked.timeline.sequence(RequestId(1)).pages),
            (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(walked.timeline.free_pages().size(), 6u);
  EXPECT_FALSE(walked.timeline.sequences().contains(RequestId(0)));
}

TEST(Timeline, EveryOrderIsAPermutation) {
  std::set<std::vector<uint32_t>> orders;
  for (const PageOrder order : {PageOrder::kIdentity, PageOrder::kReversed, PageOrder::kShuffled}) {
    Case c = small_case(
        {op::Admit{.request = RequestId(0)}, one_row({.request = RequestId(0), .append = 32})});
    c.pool.order = order;
    const auto pages = page_values(walk(c).timeline.sequence(RequestId(0)).pages);
    EXPECT_EQ(std::set<uint32_t>(pages.begin(), pages.end()).size(), 8u);
    orders.insert(pages);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Timeline, EqualPrefixesShareHistoryUntilTheyDiverge) {
  const Case c = small_case({op::Admit{.request = RequestId(0), .prompt_tokens = 8},
                             op::Admit{.request = RequestId(1),
                                       .prompt_tokens = 8,
                                       .prefix_of = RequestId(0),
                                       .prefix_tokens = 5},
                             op::Admit{.request = RequestId(2),
                                       .prompt_tokens = 8,
                                       .side_input = 1,
                                       .prefix_of = RequestId(0),
                                       .prefix_tokens = 5},
                             op::Step{.rows = {{.request = RequestId(0), .append = 8},
                                               {.request = RequestId(1), .append = 8},
                                               {.request = RequestId(2), .append = 8}}}});
  const Walked walked = walk(c);
  const auto& a = walked.timeline.sequence(RequestId(0)).slots;
  const auto& b = walked.timeline.sequence(RequestId(1)).slots;
  const auto& other_side_input = walked.timeline.sequence(RequestId(2)).slots;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a[i] == b[i], i < 5) << i;
    EXPECT_NE(a[i].history, other_side_input[i].history) << i;
  }
}

TEST(Timeline, ChunkingChangesNoSlot) {
  Case whole = small_case(
      {op::Admit{.request = RequestId(0)}, one_row({.request = RequestId(0), .append = 9})});
  Case chunks = small_case({op::Admit{.request = RequestId(0)},
                            one_row({.request = RequestId(0), .append = 4}),
                            one_row({.request = RequestId(0), .append = 4}),
                            one_row({.request = RequestId(0), .append = 1})});
  EXPECT_EQ(walk(whole).timeline.sequence(RequestId(0)).slots,
            walk(chunks).timeline.sequence(RequestId(0)).slots);
}

TEST(Timeline, RefusesWhatIsUnlawful) {
  const op::Admit admit{.request = RequestId(0)};
  const op::Step step = one_row({.request = RequestId(0), .append = 1});
  EXPECT_EQ(refusal(small_case({admit, step})), "");
  EXPECT_EQ(refusal(small_case({step})),
            "ops[0].rows[0]: request 0 is not admitted, expected a live request");
  EXPECT_EQ(refusal(small_case({admit, op::Cancel{RequestId(0)}, step})),
            "ops[2].rows[0]: request 0 is no longer live, expected a live request");
  EXPECT_EQ(refusal(small_case({admit, admit})),
            "ops[1]: request 0 was admitted before, expected a new id");
  EXPECT_EQ(refusal(small_case({admit, one_row({.request = RequestId(0), .append = 33})})),
            "ops[1].rows[0]: request 0 needs 9 more pages, got 8 free of pool.page_count 8");
  EXPECT_EQ(refusal(small_case({admit, op::Step{.rows = {step.rows[0], step.rows[0]}}})),
            "ops[1].rows[1]: request 0 occurs twice in the step, expected once");
}

TEST(Timeline, RefusesOverridesThatNothingWouldReceive) {
  const RequestId r(3);
  Case c = small_case({op::Admit{.request = r, .prompt_tokens = 2},
                       one_row({.request = r, .append = 2, .queries = 2}), op::Finish{r}});
  c.data.overrides = {{.tensor = 1, .request = r, .slot = 1}};
  EXPECT_EQ(refusal(c), "");
  c.data.overrides[0].slot = 2;
  EXPECT_NE(refusal(c).find("data.overrides[0]"), std::string::npos) << refusal(c);
  c.data.overrides[0] = {.tensor = 1, .request = RequestId(0), .slot = 0};
  EXPECT_NE(refusal(c).find("data.overrides[0]"), std::string::npos) << refusal(c);
}

TEST(Timeline, ThePoolMayBeFilledToTheLastSlot) {
  const Case c = small_case(
      {op::Admit{.request = RequestId(0)}, one_row({.request = RequestId(0), .append = 32})});
  EXPECT_TRUE(walk(c).timeline.free_pages().empty());
}

TEST(Timeline, RefusesAsUnsupportedWhatItCannotExecute) {
  const op::Admit admit{.request = RequestId(0)};
  const auto kind = [](const Case& c) { return Timeline::create(c).error().kind; };
  EXPECT_EQ(kind(small_case({admit, op::Fork{RequestId(0), RequestId(1)}})),
            ErrorKind::kUnsupported);
  // PAD after real tokens is lawful at the end, and a hole once real tokens follow.
  const op::Step padded = one_row({.request = RequestId(0), .append = 2, .pad_right = 1});
  EXPECT_EQ(refusal(small_case({admit, padded})), "");
  EXPECT_EQ(kind(small_case({admit, padded, padded})), ErrorKind::kUnsupported);
  // A mask tensor tells holes, as long as requests do not share it.
  Case masked = small_case({admit, padded, padded});
  masked.mask.encoding = MaskEncoding::kBoolKeep;
  EXPECT_EQ(refusal(masked), "");
  masked.mask.broadcast_batch = true;
  EXPECT_EQ(kind(masked), ErrorKind::kUnsupported);
  Case narrow = small_case({admit});
  narrow.shape.query_dtype = DType::kE4m3;
  EXPECT_EQ(kind(narrow), ErrorKind::kUnsupported);
  Case quantised = small_case({admit});
  quantised.shape.kv_dtype = DType::kE4m3;
  quantised.shape.kv_scale = KvScale::kTensor;
  quantised.shape.rope = {.pairing = RopePairing::kNeox, .dims = 8};
  EXPECT_EQ(refusal(quantised), "");
}

// ---------------------------------------------------------------- what a row sees

std::vector<std::string> matrix(const Case& c) {
  const Walked walked = walk(c);
  const PlannedRow& row = walked.last.rows.at(0);
  std::vector<std::string> lines;
  for (uint32_t q = 0; q < row.queries; ++q) {
    std::string line;
    for (const uint8_t v : visible_slots(c, walked.timeline.sequence(row.request), row, {q})) {
      line += v ? '1' : '0';
    }
    const SlotRange range = visible_range(c.mask, row, q);
    std::string same(row.kv_length, '0');
    for (uint32_t i = range.begin; i < range.end; ++i) same[i] = '1';
    EXPECT_EQ(line, same) << "visible_range of row " << q;
    lines.push_back(line);
  }
  return lines;
}

Case masked(Mask mask, op::StepRow row) {
  Case c = small_case({op::Admit{.request = RequestId(0)}, one_row(std::move(row))});
  c.mask = mask;
  return c;
}

TEST(Visibility, QueriesBeyondTheKeysSeeNothingWhenAlignedBottomRight) {
  const op::StepRow row{.request = RequestId(0), .append = 2, .queries = 4};
  EXPECT_EQ(matrix(masked({.causal = Causal::kBottomRight}, row)),
            (std::vector<std::string>{"00", "00", "10", "11"}));
  EXPECT_EQ(matrix(masked({.causal = Causal::kTopLeft}, row)),
            (std::vector<std::string>{"10", "11", "11", "11"}));
  EXPECT_EQ(matrix(masked({.causal = Causal::kNone}, row)),
            (std::vector<std::string>{"11", "11", "11", "11"}));
}

TEST(Visibility, WindowsAreInclusiveAndMeasuredFromTheCausalLimit) {
  const op::StepRow row{.request = RequestId(0), .append = 5, .queries = 2};
  EXPECT_EQ(matrix(masked({.causal = Causal::kBottomRight, .window_left = 1}, row)),
            (std::vector<std::string>{"00110", "00011"}));
  EXPECT_EQ(matrix(masked({.causal = Causal::kBottomRight, .window_left = 0}, row)),
            (std::vector<std::string>{"00010", "00001"}));
  EXPECT_EQ(matrix(masked({.causal = Causal::kNone, .window_left = 2, .window_right = 0}, row)),
            (std::vector<std::string>{"01110", "00111"}));
}

TEST(Visibility, ATreeRowSeesItsAncestorsAndTheOldTokens) {
  const Case c = small_case({op::Admit{.request = RequestId(0)},
                             one_row({.request = RequestId(0), .append = 5, .queries = 3})});
  const Walked walked = walk(c);
  PlannedRow row = walked.last.rows[0];
  row.append_slots = 3;
  row.tree_parents = {-1, 0, 0};
  const auto sees = [&](uint32_t q) {
    return visible_slots(c, walked.timeline.sequence(RequestId(0)), row, {q});
  };
  EXPECT_EQ(sees(0), (std::vector<uint8_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(sees(1), (std::vector<uint8_t>{1, 1, 1, 1, 0}));
  EXPECT_EQ(sees(2), (std::vector<uint8_t>{1, 1, 1, 0, 1}));
}

}  // namespace
}  // namespace kv
