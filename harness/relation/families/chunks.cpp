// Family chunks: prompts in two chunks, their last tokens one at a time, or in one verify step: a
// tree of one branch, which hides what causality hides.
// Holds: the same bits for each query, where KV_PROMISE_CHUNK and KV_PROMISE_PAGE. Elsewhere the
// reference judges both: another number of rows may take another kernel.
// Of: cases whose queries see the same keys whether the tokens behind them are there yet or not:
// causal at the bottom right, no right window, no mask tensor; prompts without padding.
// Kills: 156_promises_chunks
#include <algorithm>
#include <vector>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

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
  for (uint32_t i = 0; chunking == Chunking::kVerify && i < tail; ++i)
    part.tree_parents.push_back(static_cast<int32_t>(i) - 1);
  return std::vector<op::StepRow>(one_by_one ? tail : 1, part);
}

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
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

}  // namespace

constexpr Relation chunks = {
    .name = "chunks",
    .purpose = "prompts in two chunks, their last tokens one at a time or in a verify step",
    .finds = "chunk bookkeeping; bits where a plugin promises them",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_CHUNK | KV_PROMISE_PAGE,
    .change = change};

}  // namespace kv::families
