#include "fuzz/mutate.h"

#include <algorithm>

#include "harness/case/timeline.h"
#include "harness/case/validate.h"

namespace kv::fuzzing {
namespace {

// Of a part that is drawn anew: more than any part reads. What is missing would be zeros, the
// simplest choices, so that most axes of a case were off.
constexpr size_t kDrawnBytes = 64, kDrawnBytesOfMany = 24;
constexpr size_t kFewOperations = 8;
constexpr size_t kGrownMax = 64;

void draw_anew(PhiloxSource& choices, Chunk& chunk) {
  chunk.resize(kDrawnBytes);
  for (uint8_t& byte : chunk) byte = static_cast<uint8_t>(choices.below(256));
}

/// To an edge, by one, one bit, or anything.
void change_byte(PhiloxSource& choices, Chunk& chunk) {
  if (chunk.empty()) chunk.resize(choices.between(1, kDrawnBytes));
  uint8_t& byte = chunk[choices.below(chunk.size())];
  const auto any = static_cast<uint8_t>(choices.below(256));
  const auto bit = static_cast<uint8_t>(1U << choices.below(8));
  byte = choices.pick<uint8_t>({any, static_cast<uint8_t>(byte + 1), static_cast<uint8_t>(byte - 1),
                                static_cast<uint8_t>(byte ^ bit), 0, 255, any});
}

void change_operations(PhiloxSource& choices, Chunks& chunks) {
  const auto first = chunks.begin() + kSettingsChunks;
  const auto any = [&] {
    return first +
           static_cast<ptrdiff_t>(choices.below(static_cast<uint64_t>(chunks.end() - first)));
  };
  const bool may_grow = chunks.size() < kSettingsChunks + kGrownMax;
  switch (choices.below(4)) {
    case 0:
      if (chunks.size() > kSettingsChunks + 1) chunks.erase(any());
      return;
    case 1:
      if (may_grow) {
        Chunk copy = *any();
        chunks.insert(any(), std::move(copy));
      }
      return;
    case 2:
      if (may_grow) draw_anew(choices, *chunks.insert(any(), Chunk()));
      return;
    default:
      std::iter_swap(any(), any());
  }
}

void change_with_engine(PhiloxSource& choices, Chunk& chunk, MutateBytes mutate_bytes) {
  const size_t size = chunk.size();
  chunk.resize(kChunkBytesMax);
  const size_t grown = std::min(kChunkBytesMax, size + choices.below(8));
  chunk.resize(mutate_bytes(chunk.data(), size, std::max<size_t>(grown, 1)));
}

void change_once(PhiloxSource& choices, Chunks& chunks, MutateBytes mutate_bytes) {
  Chunk& chunk = chunks[choices.below(chunks.size())];
  // Mostly a whole part: a byte by itself seldom is a choice that was read and is another now.
  switch (choices.below(8)) {
    case 0:
      return change_with_engine(choices, chunk, mutate_bytes);
    case 1:
      return change_operations(choices, chunks);
    case 2:
    case 3:
      return change_byte(choices, chunk);
    default:
      return draw_anew(choices, chunk);
  }
}

op::StepRow* any_row(PhiloxSource& choices, Case& c) {
  std::vector<op::StepRow*> rows;
  for (Op& operation : c.ops) {
    auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    for (op::StepRow& row : step->rows) rows.push_back(&row);
  }
  return rows.empty() ? nullptr : rows[choices.below(rows.size())];
}

/// A number of the case by one, or to its double or half.
void nudge(PhiloxSource& choices, Case& c) {
  op::StepRow* row = any_row(choices, c);
  const auto moved = [&choices](auto value) {
    using Number = decltype(value);
    return choices.pick<Number>({static_cast<Number>(value + 1), static_cast<Number>(value - 1),
                                 static_cast<Number>(value * 2), static_cast<Number>(value / 2)});
  };
  switch (choices.below(9)) {
    case 0:
      c.pool.page_slots = choices.one_in(2) ? c.pool.page_slots * 2 : c.pool.page_slots / 2;
      return;
    case 1:
      c.mask.window_left = moved(c.mask.window_left);
      return;
    case 2:
      c.exec.split_slots = moved(c.exec.split_slots);
      return;
    case 3:
      c.shape.query_heads = c.shape.kv_heads * static_cast<uint32_t>(choices.between(1, 4));
      return;
    case 4:
      c.data.seed = choices.bits64();
      return;
    case 5:
      c.pool.page_count = moved(c.pool.page_count);
      return;
    case 6:
      if (row != nullptr) row->append = moved(row->append);
      return;
    case 7:
      if (row != nullptr) row->queries = moved(row->queries);
      return;
    default:
      if (row != nullptr) row->pad_left = moved(row->pad_left);
  }
}

void take_part(PhiloxSource& choices, const Case& other, Case& c) {
  const uint32_t pages = c.pool.page_count;
  switch (choices.below(7)) {
    case 0:
      c.shape = other.shape;
      return;
    case 1:
      c.mask = other.mask;
      return;
    case 2:
      c.pool = other.pool;
      c.pool.page_count = std::max(pages, other.pool.page_count);
      return;
    case 3:
      c.data = other.data;
      c.data.overrides.clear();
      return;
    case 4:
      c.exec = other.exec;
      return;
    default:
      c.ops = other.ops;
      c.pool.page_count = std::max(pages, other.pool.page_count);
      c.pool.page_slots = other.pool.page_slots;
      c.data.overrides.clear();
  }
}

}  // namespace

void mutate(Chunks& chunks, uint32_t seed, MutateBytes mutate_bytes, size_t operations) {
  PhiloxSource choices(seed, 0);
  // The one input in four that nothing guides keeps the search as wide as random draws are.
  if (chunks.size() <= kSettingsChunks || choices.one_in(4)) {
    // How long a history is, its settings say: operations without bytes would be the simplest ones.
    const bool is_history = operations > kFewOperations;
    chunks.assign(kSettingsChunks + (is_history ? operations : choices.between(1, operations)), {});
    for (Chunk& chunk : chunks) draw_anew(choices, chunk);
    // The choices of one among many are few; the whole stays within libFuzzer's 4096 bytes.
    for (size_t i = kSettingsChunks + kFewOperations; i < chunks.size(); ++i)
      chunks[i].resize(kDrawnBytesOfMany);
    return;
  }
  for (uint64_t i = choices.between(1, 3); i > 0; --i) change_once(choices, chunks, mutate_bytes);
}

Chunks crossed(const Chunks& a, const Chunks& b, uint32_t seed) {
  PhiloxSource choices(seed, 1);
  Chunks child(std::max(kSettingsChunks, std::min(a.size(), b.size())));
  const size_t cut = choices.between(kSettingsChunks, child.size());
  const bool longer = a.size() < b.size();
  child.resize(std::max({kSettingsChunks, a.size(), b.size()}));
  for (size_t i = 0; i < child.size(); ++i) {
    const bool from_b = i < kSettingsChunks ? choices.one_in(2) : i >= cut;
    const Chunks& from = i < std::min(a.size(), b.size()) ? (from_b ? b : a) : (longer ? b : a);
    if (i < from.size()) child[i] = from[i];
  }
  return child;
}

std::optional<Case> mutated_case(const Case& parent, const Case& other, uint32_t seed) {
  PhiloxSource choices(seed, 2);
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    Case child = parent;
    child.name = "mutated";
    child.comment.clear();
    child.data.digest.reset();
    if (choices.one_in(2)) {
      nudge(choices, child);
    } else {
      take_part(choices, other, child);
    }
    if (check_case(child).ok() && Timeline::create(child).ok()) return child;
  }
  return std::nullopt;
}

}  // namespace kv::fuzzing
