// Who computes with whom, and in how many steps.
#include <algorithm>

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

bool in_chunks(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  // A row must see the same keys whether the tokens behind it are there yet or not.
  const bool sees_no_future = c.mask.causal == Causal::kBottomRight && c.mask.window_right < 0;
  if (!sees_no_future || c.mask.encoding != MaskEncoding::kNone) return false;
  std::vector<Op> ops;
  bool changed = false;
  for (Op& op : c.ops) {
    ops.push_back(std::move(op));
    auto* step = std::get_if<op::Step>(&ops.back());
    if (step == nullptr) continue;
    op::Step rest;
    for (op::StepRow& row : step->rows) {
      if (!may_be_chunked(row)) continue;
      const auto first = static_cast<uint32_t>(choices.between(1, row.append - 1));
      rest.rows.push_back(
          {.request = row.request, .append = row.append - first, .queries = row.append - first});
      row.append = row.queries = first;
    }
    if (rest.rows.empty()) continue;
    changed = true;
    ops.emplace_back(std::move(rest));
  }
  c.ops = std::move(ops);
  return changed;
}

bool other_split(ChoiceSource& choices, Image& image) {
  const uint32_t before = image.c.exec.split_slots, page = image.c.pool.page_slots;
  image.c.exec.split_slots = choices.pick<uint32_t>({16, 1, page, 33, 4096});
  return image.c.exec.split_slots != before;
}

bool with_padding(ChoiceSource& choices, Image& image) {
  std::vector<RequestId> begun;
  uint64_t added = 0;
  for_each_step(image.c, [&](op::Step& step) {
    for (op::StepRow& row : step.rows) {
      const bool is_first =
          std::find(begun.begin(), begun.end(), row.request) == begun.end() && row.append > 0;
      if (!is_first || row.queries > row.append) continue;
      begun.push_back(row.request);
      const auto pads = static_cast<uint32_t>(choices.between(1, 20));
      row.pad_left += pads;
      added += pads + image.c.pool.page_slots;
    }
  });
  if (added > 0) add_pages(image.c, added);
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
     .purpose = "prompts in two chunks",
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
     .purpose = "PAD slots before each prompt",
     .finds = "padding against causal alignment in every shape that runs without padding",
     .agreement = Agreement::kJudged,
     .promises = 0,
     .change = with_padding},
};

}  // namespace

std::span<const Relation> batch_relations() { return kRelations; }

}  // namespace kv
