// Who computes with whom, and in how many steps.
#include <algorithm>
#include <map>

#include "harness/case/pages.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families.h"

namespace kv {
namespace {

template <class Visit>
void for_each_step(Case& c, Visit visit) {
  for (Op& op : c.ops)
    if (auto* step = std::get_if<op::Step>(&op)) visit(*step);
}

bool other_order(ChoiceSource& choices, Image& image) {
  bool changed = false;
  for_each_step(image.c, [&](op::Step& step) {
    if (step.rows.size() < 2) return;
    const auto by = static_cast<ptrdiff_t>(choices.between(1, step.rows.size() - 1));
    std::rotate(step.rows.begin(), step.rows.begin() + by, step.rows.end());
    changed = true;
  });
  return changed;
}

/// Only one of the requests appends and attends; the others are admitted and end as before.
bool alone(ChoiceSource& choices, Image& image) {
  std::vector<RequestId> attending;
  for_each_step(image.c, [&](op::Step& step) {
    for (const op::StepRow& row : step.rows)
      if (row.queries > 0) attending.push_back(row.request);
  });
  if (attending.empty()) return false;
  const RequestId kept = attending[choices.below(attending.size())];
  bool changed = false;
  for_each_step(image.c, [&](op::Step& step) {
    changed |=
        std::erase_if(step.rows, [kept](const op::StepRow& r) { return r.request != kept; }) > 0;
  });
  std::erase_if(image.c.ops, [](const Op& op) {
    const auto* step = std::get_if<op::Step>(&op);
    return step != nullptr && step->rows.empty();
  });
  return changed;
}

/// A request that the case does not have.
RequestId stranger(const Case& c) {
  uint32_t next = 0;
  for (const Op& op : c.ops)
    if (const auto* admit = std::get_if<op::Admit>(&op))
      next = std::max(next, admit->request.value + 1);
  return RequestId(next);
}

void add_pages(Case& c, uint64_t slots) {
  c.pool.page_count += static_cast<uint32_t>(slots / c.pool.page_slots + 1);
}

bool in_company(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const RequestId other = stranger(c);
  const auto prompt = static_cast<uint32_t>(choices.between(1, 80));
  uint32_t slots = 0;
  for_each_step(c, [&](op::Step& step) {
    const uint32_t append = slots == 0 ? prompt : 1;
    const auto at = static_cast<ptrdiff_t>(choices.below(step.rows.size() + 1));
    step.rows.insert(step.rows.begin() + at,
                     {.request = other, .append = append, .queries = append});
    slots += append;
  });
  add_pages(c, slots);
  c.ops.insert(c.ops.begin(), op::Admit{.request = other, .prompt_tokens = prompt});
  return slots > 0;
}

/// The pool has been used before, and so have the kernels.
bool after_another(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const RequestId other = stranger(c);
  const auto prompt = static_cast<uint32_t>(choices.between(1, 100));
  const uint32_t queries = choices.pick<uint32_t>({prompt, 1});
  const auto pages = static_cast<uint32_t>(pages_for(prompt, c.pool.page_slots));
  c.pool.page_count = std::max(c.pool.page_count, pages);
  const Op before[] = {op::Admit{.request = other, .prompt_tokens = prompt},
                       op::Step{.rows = {{.request = other, .append = prompt, .queries = queries}}},
                       op::Cancel{.request = other}};
  c.ops.insert(c.ops.begin(), std::begin(before), std::end(before));
  return true;
}

bool may_be_chunked(const op::StepRow& row) {
  return row.append > 1 && row.queries == row.append && row.pad_left == 0 && row.pad_right == 0 &&
         row.tree_parents.empty();
}

enum class Chunking : uint8_t { kTwo, kDecode, kVerify };
constexpr uint32_t kDecodedMax = 3;  // tokens that follow one at a time
constexpr uint32_t kVerifiedMax = 32;

/// The row's tail, which other steps append; the row keeps what is in front of it.
std::vector<op::StepRow> cut_tail(ChoiceSource& choices, Chunking chunking, op::StepRow& row) {
  const uint32_t most = row.append - 1;
  auto tail = static_cast<uint32_t>(choices.between(1, most));
  if (chunking == Chunking::kDecode) tail = std::min(most, kDecodedMax);
  if (chunking == Chunking::kVerify) tail = std::min(tail, kVerifiedMax);
  row.append = row.queries = row.append - tail;
  const bool one_by_one = chunking == Chunking::kDecode;
  op::StepRow part{.request = row.request};
  part.append = part.queries = one_by_one ? 1 : tail;
  // A tree of one branch hides what causality hides.
  for (uint32_t i = 0; chunking == Chunking::kVerify && i < tail; ++i)
    part.tree_parents.push_back(static_cast<int32_t>(i) - 1);
  return std::vector<op::StepRow>(one_by_one ? tail : 1, part);
}

bool in_chunks(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  // A row must see the same keys whether the tokens behind it are there yet or not.
  const bool sees_no_future = c.mask.causal == Causal::kBottomRight && c.mask.window_right < 0;
  if (!sees_no_future || c.mask.encoding != MaskEncoding::kNone) return false;
  const auto chunking = choices.pick({Chunking::kTwo, Chunking::kDecode, Chunking::kVerify});
  std::vector<Op> ops;
  bool changed = false;
  for (Op& op : c.ops) {
    ops.push_back(std::move(op));
    auto* step = std::get_if<op::Step>(&ops.back());
    if (step == nullptr) continue;
    std::vector<op::Step> rest;
    for (op::StepRow& row : step->rows) {
      if (!may_be_chunked(row)) continue;
      const std::vector<op::StepRow> tail = cut_tail(choices, chunking, row);
      rest.resize(std::max(rest.size(), tail.size()));
      for (size_t i = 0; i < tail.size(); ++i) rest[i].rows.push_back(tail[i]);
    }
    changed |= !rest.empty();
    for (op::Step& later : rest) ops.emplace_back(std::move(later));
  }
  c.ops = std::move(ops);
  return changed;
}

bool other_split(ChoiceSource& choices, Image& image) {
  const uint32_t before = image.c.exec.split_slots, page = image.c.pool.page_slots;
  image.c.exec.split_slots = choices.pick<uint32_t>({16, 1, page, 33, 4096});
  return image.c.exec.split_slots != before;
}

/// Where PAD goes: in front of a request's first tokens, behind its last ones, both, or into a hole
/// behind its first ones.
struct Sides {
  bool left = false, right = false, hole = false;
};

/// Steps in which a request appends, in order.
struct Appends {
  const op::StepRow* first = nullptr;
  const op::StepRow* last = nullptr;
};
std::map<RequestId, Appends> appends_of(Case& c) {
  std::map<RequestId, Appends> appends;
  for_each_step(c, [&](op::Step& step) {
    for (const op::StepRow& row : step.rows) {
      if (row.append == 0) continue;
      Appends& of = appends[row.request];
      if (of.first == nullptr) of.first = &row;
      of.last = &row;
    }
  });
  return appends;
}

/// Pads one request's rows as they pass; says how many PAD slots it has added.
class PaddedRequest {
 public:
  PaddedRequest(Appends appends, Sides sides, uint32_t pads)
      : appends_(appends), sides_(sides), pads_(pads) {}

  uint64_t pad(op::StepRow& row) {
    // The queries stay those of real tokens: PAD rows come behind them.
    if (row.append == 0 && row.queries > 0) row.queries += behind_;
    if (row.append > 0) behind_ = 0;
    uint64_t added = 0;
    const bool is_plain = row.queries <= row.append && row.tree_parents.empty();
    if (&row == appends_.first && sides_.left && is_plain) {
      row.pad_left += pads_;
      added += pads_;
    }
    const bool is_hole = &row == appends_.first && &row != appends_.last && sides_.hole;
    const bool is_end = &row == appends_.last && sides_.right;
    if ((is_hole || is_end) && is_plain && row.pad_right == 0) {
      row.pad_right = behind_ = pads_;
      if (row.queries > 0) row.queries += pads_;
      added += pads_;
    }
    return added;
  }

 private:
  Appends appends_;
  Sides sides_;
  uint32_t pads_, behind_ = 0;
};

/// One more request, whose rows are PAD from end to end.
uint64_t add_empty_request(ChoiceSource& choices, Case& c) {
  const RequestId other = stranger(c);
  const auto pads = static_cast<uint32_t>(choices.between(1, 20));
  for (Op& op : c.ops) {
    auto* step = std::get_if<op::Step>(&op);
    if (step == nullptr) continue;
    const auto at = static_cast<ptrdiff_t>(choices.below(step->rows.size() + 1));
    step->rows.insert(step->rows.begin() + at,
                      {.request = other, .pad_left = pads, .queries = pads});
    c.ops.insert(c.ops.begin(), op::Admit{.request = other, .prompt_tokens = 1});
    return pads;
  }
  return 0;
}

bool with_padding(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  enum class Kind : uint8_t { kLeft, kRight, kBoth, kHole, kWholeRow };
  auto kind = choices.pick({Kind::kLeft, Kind::kRight, Kind::kBoth, Kind::kHole, Kind::kWholeRow});
  // Only a mask with a row for each request can tell of a hole.
  const bool tells_holes = c.mask.encoding != MaskEncoding::kNone && !c.mask.broadcast_batch;
  if (kind == Kind::kHole && !tells_holes) kind = Kind::kBoth;
  uint64_t added = 0;
  if (kind == Kind::kWholeRow) added = add_empty_request(choices, c);
  const Sides sides{.left = kind == Kind::kLeft || kind == Kind::kBoth,
                    .right = kind == Kind::kRight || kind == Kind::kBoth,
                    .hole = kind == Kind::kHole};
  std::map<RequestId, PaddedRequest> requests;
  for (const auto& [request, appends] : appends_of(c))
    requests.emplace(request,
                     PaddedRequest(appends, sides, static_cast<uint32_t>(choices.between(1, 20))));
  for_each_step(c, [&](op::Step& step) {
    for (op::StepRow& row : step.rows) {
      const auto padded = requests.find(row.request);
      if (padded != requests.end()) added += padded->second.pad(row);
    }
  });
  // Each request may need a page more than its PAD slots do.
  if (added > 0) add_pages(c, added + (requests.size() + 1) * c.pool.page_slots);
  return added > 0;
}

constexpr uint32_t kPlacement = KV_PROMISE_BATCH | KV_PROMISE_PAGE;

constexpr Relation kRelations[] = {
    {.name = "batch_order",
     .purpose = "the rows of every step in another order",
     .finds = "a result that depends on a row's index in the batch, within its error bound",
     .agreement = Agreement::kBits,
     .promises = kPlacement,
     .change = other_order},
    {.name = "alone",
     .purpose = "one of the requests, alone",
     .finds = "a kernel or split size that the company chooses",
     .agreement = Agreement::kBits,
     .promises = kPlacement,
     .change = alone},
    {.name = "company",
     .purpose = "one more request in every step",
     .finds = "a kernel or split size that the company chooses, for cases of one request",
     .agreement = Agreement::kBits,
     .promises = kPlacement,
     .change = in_company},
    {.name = "history",
     .purpose = "after another request that ran and was cancelled",
     .finds = "results that depend on what a recycled page or buffer held",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_DETERMINISTIC | KV_PROMISE_PAGE,
     .change = after_another},
    {.name = "chunks",
     .purpose = "prompts in two chunks, their last tokens one at a time or in a verify step",
     .finds = "chunk bookkeeping; bits where a plugin promises them",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_CHUNK | KV_PROMISE_PAGE,
     .change = in_chunks},
    {.name = "split_size",
     .purpose = "keys cut into splits of another size",
     .finds = "ghost splits, a sink or maximum for each split; nothing else draws splits",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_SPLIT,
     .change = other_split},
    {.name = "padding",
     .purpose =
         "PAD slots before or behind each prompt, on both sides, in holes, or a request of them",
     .finds = "padding against causal alignment in every shape that runs without padding",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = with_padding},
};

}  // namespace

std::span<const Relation> batch_relations() { return kRelations; }

}  // namespace kv
