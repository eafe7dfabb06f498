// Properties of cases themselves: the file format, the meaning of operations, the data function.
// Each names the planted bug that it was seen to kill.
#include <algorithm>
#include <set>

#include "harness/case/data.h"
#include "harness/case/features.h"
#include "harness/case/json.h"
#include "harness/case/mask_bits.h"
#include "harness/case/timeline.h"
#include "harness/case/visibility.h"
#include "properties/case_walk.h"
#include "properties/gen/cases.h"

namespace kv::props {
namespace {

// Kills: a lawful history with a real token behind PAD (a row's `closed` flag forgotten).
RC_GTEST_PROP(CaseProperty, EveryDrawnCaseIsLawful, ()) {
  const Case c = *cases();
  RC_ASSERT(Timeline::create(c).ok());
}

// Kills: a field missing from the schema.
RC_GTEST_PROP(CaseProperty, FilesRoundTripExactly, ()) {
  const Case c = *cases();
  const std::string text = case_to_json(c);
  const Result<Case> back = parse_case(text, "drawn");
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == c);
  RC_ASSERT(case_to_json(*back) == text);
}

// Kills: give_back of only the first page; take that leaves the page in the list.
RC_GTEST_PROP(CaseProperty, PagesArePartitionedAfterEveryOperation, ()) {
  const Case c = *cases();
  Timeline timeline = Timeline::create(c).value();
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    timeline.apply(i);
    std::multiset<PageId> pages(timeline.free_pages().begin(), timeline.free_pages().end());
    for (const auto& [request, sequence] : timeline.sequences()) {
      pages.insert(sequence.pages.begin(), sequence.pages.end());
      const size_t capacity = sequence.pages.size() * c.pool.page_slots;
      RC_ASSERT(capacity >= sequence.slots.size());
      RC_ASSERT(capacity < sequence.slots.size() + c.pool.page_slots);
    }
    RC_ASSERT(pages.size() == c.pool.page_count);
    RC_ASSERT(std::set<PageId>(pages.begin(), pages.end()).size() == c.pool.page_count);
    RC_ASSERT(pages.empty() || pages.rbegin()->value < c.pool.page_count);
  }
}

// The same appends, token by token where the original appends several at once.
Case token_by_token(const Case& c) {
  Case slow = c;
  slow.ops.clear();
  for (const Op& op : c.ops) {
    const auto* step = std::get_if<op::Step>(&op);
    if (step == nullptr) {
      slow.ops.push_back(op);
      continue;
    }
    for (const op::StepRow& row : step->rows) {
      const auto append = [&](op::StepRow part) {
        part.request = row.request;
        slow.ops.emplace_back(op::Step{.rows = {part}});
      };
      append({.pad_left = row.pad_left});
      for (uint32_t i = 0; i < row.append; ++i) append({.append = 1});
      append({.pad_right = row.pad_right});
    }
  }
  return slow;
}

// Kills: a history that restarts with every chunk; a prefix that ends early when a chunk begins at
// its last token.
RC_GTEST_PROP(CaseProperty, ChunkingChangesNoByte, ()) {
  const Case c = *cases();
  const Case slow = token_by_token(c);
  const Timeline whole = at_end(c), tokens = at_end(slow);
  for (const auto& [request, sequence] : whole.sequences()) {
    const Sequence& same = tokens.sequence(request);
    RC_ASSERT(sequence.slots == same.slots);
    RC_ASSERT(stored_bytes(c, sequence) == stored_bytes(slow, same));
  }
}

// Kills: side inputs left out of the root; a prefix that ends one token early.
RC_GTEST_PROP(CaseProperty, RequestsShareExactlyTheirCommonPrefix, ()) {
  const Case c = *cases();
  const Timeline timeline = at_end(c);
  for (const Op& op : c.ops) {
    const auto* admit = std::get_if<op::Admit>(&op);
    if (admit == nullptr || !timeline.sequences().contains(admit->request)) continue;
    const auto histories = [&](RequestId request) {
      std::vector<uint64_t> real;
      for (const Slot& slot : timeline.sequence(request).slots) {
        if (!slot.pad) real.push_back(slot.history);
      }
      return real;
    };
    for (const auto& [other, sequence] : timeline.sequences()) {
      if (other == admit->request) continue;
      const auto mine = histories(admit->request), theirs = histories(other);
      const size_t common = std::min(mine.size(), theirs.size());
      const auto split = std::mismatch(mine.begin(), mine.begin() + common, theirs.begin());
      const auto shared = static_cast<uint64_t>(split.first - mine.begin());
      // Once diverged, never equal again.
      for (size_t i = shared; i < common; ++i) RC_ASSERT(mine[i] != theirs[i]);
      if (admit->prefix_of != other) continue;
      const bool same_root = admit->side_input == 0;  // only sharers get another side input
      const auto& source = std::get<op::Admit>(
          *std::find_if(c.ops.begin(), c.ops.end(), [other = other](const Op& o) {
            const auto* a = std::get_if<op::Admit>(&o);
            return a != nullptr && a->request == other;
          }));
      const uint64_t want = same_root == (source.side_input == 0)
                                ? std::min<uint64_t>(admit->prefix_tokens, common)
                                : 0;
      RC_ASSERT(shared == want);
    }
  }
}

// Kills: an off-by-one in visible_range's end; PAD rows counted as live empty rows.
RC_GTEST_PROP(CaseProperty, EmptyRowsAreCountedAsTheMaskDefinesThem, ()) {
  const Case c = *cases();
  Timeline timeline = Timeline::create(c).value();
  uint64_t empty = 0;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    for (const PlannedRow& row : timeline.apply(i).rows) {
      const Sequence& sequence = timeline.sequence(row.request);
      for (uint32_t q = 0; q < row.queries; ++q) {
        bool sees_nothing = false;  // in some head
        for (uint32_t head = 0; head < mask_heads(c); ++head) {
          const auto shown = visible_slots(c, sequence, row, {q, head});
          sees_nothing |= std::count(shown.begin(), shown.end(), 1) == 0;
        }
        const auto visible = visible_slots(c, sequence, row, {q});
        const auto count = std::count(visible.begin(), visible.end(), 1);
        if (c.mask.encoding == MaskEncoding::kNone && row.tree_parents.empty()) {
          const SlotRange range = visible_range(c.mask, row, q);
          RC_ASSERT(count == range.size());
          for (uint32_t s = range.begin; s < range.end; ++s) RC_ASSERT(visible[s] == 1);
        }
        empty += sees_nothing && !slot_or_tokenless(c, sequence, query_slot(row, q)).pad;
      }
    }
  }
  RC_ASSERT(features_of(c)[feature("empty_row")] == empty);
}

// Kills: a digest of lengths and tables only.
RC_GTEST_PROP(CaseProperty, TheDigestSeesWhatIsFedIn, ()) {
  Case c = *cases();
  const uint64_t digest = input_digest(c);
  RC_ASSERT(input_digest(c) == digest);
  c.exec.schedule_seed += 1;
  RC_ASSERT(input_digest(c) == digest);
  c.data.seed += 1;
  const bool random = c.data.design != Design::kCensus && c.data.design != Design::kConstantValue;
  RC_ASSERT(!random || input_digest(c) != digest);
}

}  // namespace
}  // namespace kv::props
