// Twins in which every request does what it did, and the engine has another life.
#include <algorithm>
#include <map>

#include "harness/case/limits.h"
#include "harness/history/twin_ops.h"

namespace kv {

TwinOp same(const Happened& happened) {
  return {.op = happened.op, .told = happened.told, .op_index = happened.op_index};
}

TwinOp admission_of(const call::Admit& content, uint32_t op_index) {
  return {.op = op::Admit{.request = content.request,
                          .prompt_tokens = content.tokens.size(),
                          .side_input = content.side_input,
                          .position_offset = content.position_offset,
                          .owner = content.owner,
                          .slots_max = content.slots_max},
          .told = {{content.tokens}},
          .op_index = op_index};
}

namespace {

/// A row whose last tokens may be taken back, or branches of a tree dropped.
struct Guess {
  size_t op = 0, row = 0;  // of the twin
  uint64_t first = 0;      // slot of its first guess
};

// What is left of the row's tokens without those of [begin, end); false when that goes further back
// than the guesses.
bool drop_rejected(Twin& twin, const Guess& guess, uint64_t begin, uint64_t end) {
  op::StepRow& row = std::get<op::Step>(twin.ops[guess.op].op).rows[guess.row];
  std::vector<uint64_t>& tokens = twin.ops[guess.op].told.tokens[guess.row];
  end = std::min<uint64_t>(end, tokens.size());
  if (begin >= end || begin < guess.first) return false;
  const auto rejected = static_cast<uint32_t>(end - begin);
  tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(begin),
               tokens.begin() + static_cast<ptrdiff_t>(end));
  row.append -= rejected;
  row.queries -= std::min(row.queries, rejected);
  row.speculative = 0;
  row.tree_parents.clear();
  return true;
}

}  // namespace

bool twin_never_speculated(std::span<const Happened> happened, uint64_t, Twin& twin) {
  std::map<RequestId, Guess> guesses;
  const bool drafts = twin.c.engine->draft_layers > 0;
  bool changed = false;
  const auto drop = [&](RequestId request, uint64_t begin, uint64_t end) {
    const auto guess = guesses.find(request);
    const bool dropped = guess != guesses.end() && drop_rejected(twin, guess->second, begin, end);
    changed |= dropped;
    return dropped;
  };
  for (const Happened& h : happened) {
    if (const auto* truncate = std::get_if<op::Truncate>(&h.op)) {
      // The draft cache has something of its own to give back.
      if (drop(truncate->request, truncate->length, UINT64_MAX) && !drafts) continue;
    }
    if (const auto* shift = std::get_if<op::Shift>(&h.op)) {
      if (drop(shift->request, shift->begin, shift->end)) continue;
      guesses.erase(shift->request);
    }
    twin.ops.push_back(same(h));
    const auto* step = std::get_if<op::Step>(&h.op);
    for (size_t r = 0; step != nullptr && !step->draft && r < step->rows.size(); ++r) {
      const op::StepRow& row = step->rows[r];
      guesses.erase(row.request);
      if (row.speculative == 0) continue;
      guesses[row.request] = {
          .op = twin.ops.size() - 1, .row = r, .first = h.told.tokens[r].size() - row.append};
    }
    const bool waits = step != nullptr || std::holds_alternative<op::Complete>(h.op) ||
                       std::holds_alternative<op::Truncate>(h.op);
    if (!waits) guesses.clear();
  }
  return changed;
}

bool twin_cold(std::span<const Happened> happened, uint64_t, Twin& twin) {
  twin.c.engine->prefix_cache = !twin.c.engine->prefix_cache;
  for (const Happened& h : happened) twin.ops.push_back(same(h));
  return true;
}

bool twin_never_preempted(std::span<const Happened> happened, uint64_t, Twin& twin) {
  // Nobody gives way, so all of them need a place.
  twin.c.engine->batch_slots = twin.c.engine->request_max;
  twin.c.pool.page_count = std::min<uint32_t>(2 * twin.c.pool.page_count, limits::kPageCountMax);
  bool changed = false;
  for (const Happened& h : happened) {
    changed |= std::holds_alternative<op::Resume>(h.op);
    const bool leaves = std::holds_alternative<op::Preempt>(h.op);
    if (!leaves && !std::holds_alternative<op::Resume>(h.op)) twin.ops.push_back(same(h));
  }
  return changed;
}

bool twin_recomputed(std::span<const Happened> happened, uint64_t, Twin& twin) {
  bool changed = false;
  for (const Happened& h : happened) {
    if (!std::holds_alternative<op::Restore>(h.op)) {
      twin.ops.push_back(same(h));
      continue;
    }
    changed = true;
    twin.ops.push_back(admission_of(h.contents.at(0), h.op_index));
  }
  return changed;
}

}  // namespace kv
