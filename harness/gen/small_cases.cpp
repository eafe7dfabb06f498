#include "harness/gen/small_cases.h"

#include <algorithm>
#include <vector>

#include "harness/gen/odometer.h"

namespace kv {
namespace {

constexpr uint32_t kPages = 4, kTablePagesMax = 3;
constexpr uint32_t kMaskSide = 4, kMasksOfCase = 64;
constexpr uint32_t kKeyTile = 64, kQueryTile = 16;

Case small_case(uint32_t page_slots, uint32_t page_count) {
  Case c;
  c.pool = {.page_slots = page_slots, .page_count = page_count, .order = PageOrder::kIdentity};
  c.data.seed = 1;
  return c;
}

op::StepRow appended(uint32_t request, uint32_t tokens, uint32_t queries) {
  return {.request = RequestId(request), .append = tokens, .queries = queries};
}

// All of the last `slots` query, or the last alone.
uint32_t all_or_one(ChoiceSource& choices, uint32_t slots) {
  return slots == 1 ? 1 : choices.pick({slots, 1u});
}

// Requests that hold one page each end in such an order that the next one is given the table: the
// page that was returned last is taken first.
Case draw_table(ChoiceSource& choices) {
  const uint32_t page_slots = choices.pick({1u, 2u, 4u});
  Case c = small_case(page_slots, kPages);
  c.pool.layout = choices.pick({CacheLayout::kSlotHead, CacheLayout::kHeadSlot});
  std::vector<uint32_t> free = {0, 1, 2, 3}, table;
  const uint64_t pages = choices.between(1, kTablePagesMax);
  while (table.size() < pages) {
    const auto at = static_cast<ptrdiff_t>(choices.below(free.size()));
    table.push_back(free[at]);
    free.erase(free.begin() + at);
  }
  op::Step fill;
  for (uint32_t page = 0; page < kPages; ++page) {
    c.ops.emplace_back(op::Admit{.request = RequestId(page), .prompt_tokens = page_slots});
    fill.rows.push_back(appended(page, page_slots, 0));
  }
  c.ops.emplace_back(fill);
  for (auto page = table.rbegin(); page != table.rend(); ++page) {
    c.ops.emplace_back(op::Cancel{RequestId(*page)});
  }
  const auto slots =
      static_cast<uint32_t>((pages - 1) * page_slots + choices.between(1, page_slots));
  c.ops.emplace_back(op::Admit{.request = RequestId(kPages), .prompt_tokens = slots});
  c.ops.emplace_back(op::Step{.rows = {appended(kPages, slots, all_or_one(choices, slots))}});
  return c;
}

// Requests of one step have consecutive numbers for masks.
Case draw_mask(ChoiceSource& choices) {
  const auto queries = static_cast<uint32_t>(choices.between(1, kMaskSide));
  const auto keys = static_cast<uint32_t>(choices.between(1, kMaskSide));
  const uint64_t masks = uint64_t{1} << (queries * keys);
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(masks, kMasksOfCase));
  Case c = small_case(kMaskSide, count);
  c.mask.causal = Causal::kNone;
  c.mask.first_number = count * choices.below(masks / count);
  c.mask.encoding = choices.pick({MaskEncoding::kBoolKeep, MaskEncoding::kBoolBlock,
                                  MaskEncoding::kPackedBits, MaskEncoding::kAdditive});
  op::Step step;
  for (uint32_t request = 0; request < count; ++request) {
    c.ops.emplace_back(op::Admit{.request = RequestId(request), .prompt_tokens = keys});
    step.rows.push_back(appended(request, keys, queries));
  }
  c.ops.emplace_back(std::move(step));
  return c;
}

Case draw_lengths(ChoiceSource& choices) {
  const auto slots = static_cast<uint32_t>(choices.between(1, kKeyTile + 1));
  const uint32_t few = std::min(slots, kQueryTile + 1);
  const uint64_t chosen = choices.below(few + (slots > few ? 1 : 0));
  const uint32_t queries = chosen == few ? slots : static_cast<uint32_t>(chosen) + 1;
  Case c = small_case(16, (slots + 15) / 16);
  c.mask.causal = choices.pick({Causal::kBottomRight, Causal::kNone});
  c.shape.query_dtype = c.shape.kv_dtype = c.shape.output_dtype =
      choices.pick({DType::kF16, DType::kF32});
  c.ops = {op::Admit{.request = RequestId(0), .prompt_tokens = slots},
           op::Step{.rows = {appended(0, slots, queries)}}};
  return c;
}

enum class Padding : uint8_t { kLeft, kRight, kBoth, kHole, kWholeRow };

/// A prompt and a token more, with PAD where `padding` says; all slots are queried.
void pad_request(Padding padding, uint32_t pads, op::StepRow& prompt, op::StepRow& token) {
  if (padding == Padding::kLeft || padding == Padding::kBoth) prompt.pad_left = pads;
  if (padding == Padding::kHole) prompt.pad_right = pads;
  if (padding == Padding::kRight || padding == Padding::kBoth) token.pad_right = pads;
  for (op::StepRow* row : {&prompt, &token})
    row->queries = row->pad_left + row->append + row->pad_right;
}

/// What a position means to attention: nothing, a slope, an angle.
void draw_position_use(ChoiceSource& choices, Shape& shape) {
  const uint64_t use = choices.below(3);
  shape.alibi = use == 1;
  if (use == 2) shape.rope = {.pairing = RopePairing::kNeox, .dims = shape.head_dim_k};
}

// One request is padded, beside another one that is not.
Case draw_padding(ChoiceSource& choices) {
  const auto padding = choices.pick(
      {Padding::kLeft, Padding::kRight, Padding::kBoth, Padding::kHole, Padding::kWholeRow});
  const auto pads = choices.pick<uint32_t>({1, 4});
  Case c = small_case(4, 12);
  c.mask.causal = choices.pick({Causal::kBottomRight, Causal::kTopLeft, Causal::kNone});
  if (padding == Padding::kHole) c.mask.encoding = MaskEncoding::kBoolKeep;
  draw_position_use(choices, c.shape);
  const auto offset = choices.pick<int64_t>({0, 1, 1000});
  op::Step prompts{.rows = {appended(0, 5, 5), appended(1, 3, 3)}};
  op::Step tokens{.rows = {appended(0, 1, 1), appended(1, 1, 1)}};
  pad_request(padding, pads, prompts.rows[0], tokens.rows[0]);
  c.ops = {op::Admit{.request = RequestId(0), .prompt_tokens = 5, .position_offset = offset},
           op::Admit{.request = RequestId(1), .prompt_tokens = 3}};
  if (padding == Padding::kWholeRow) {
    c.ops.emplace_back(op::Admit{.request = RequestId(2), .prompt_tokens = 1});
    prompts.rows.push_back({.request = RequestId(2), .pad_left = pads, .queries = pads});
  }
  c.ops.emplace_back(std::move(prompts));
  c.ops.emplace_back(std::move(tokens));
  return c;
}

Case draw_of(SmallFamily family, ChoiceSource& choices) {
  switch (family) {
    case SmallFamily::kTables:
      return draw_table(choices);
    case SmallFamily::kMasks:
      return draw_mask(choices);
    case SmallFamily::kLengths:
      return draw_lengths(choices);
    case SmallFamily::kPaddings:
      break;
  }
  return draw_padding(choices);
}

}  // namespace

std::string_view small_family_name(SmallFamily family) {
  constexpr std::string_view kNames[] = {"block tables", "masks", "lengths", "paddings"};
  return kNames[static_cast<size_t>(family)];
}

Case draw_small(ChoiceSource& choices) {
  const auto family = static_cast<SmallFamily>(choices.below(kSmallFamilies));
  return draw_of(family, choices);
}

std::array<uint64_t, kSmallFamilies> count_small_cases() {
  std::array<uint64_t, kSmallFamilies> counts = {};
  for (size_t i = 0; i < kSmallFamilies; ++i) {
    Odometer choices;
    do {
      draw_of(static_cast<SmallFamily>(i), choices);
      ++counts[i];
    } while (choices.next());
  }
  return counts;
}

}  // namespace kv
