// Every small case once, and each one is lawful.
#include "harness/gen/small_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/case/mask_bits.h"
#include "harness/case/timeline.h"
#include "harness/gen/odometer.h"

namespace kv {
namespace {

TEST(Odometer, GivesEachSequenceOnce) {
  Odometer choices;
  std::set<std::vector<uint64_t>> seen;
  uint64_t drawings = 0;
  do {
    std::vector<uint64_t> taken = {choices.below(3)};
    for (uint64_t i = 0; i < taken[0]; ++i) taken.push_back(choices.between(1, 4));
    seen.insert(taken);
    ++drawings;
  } while (choices.next());
  EXPECT_EQ(drawings, 1u + 4u + 16u);
  EXPECT_EQ(seen.size(), drawings);
}

using Table = std::vector<uint32_t>;

struct Found {
  std::set<std::pair<uint32_t, Table>> tables;                    // by slots of a page
  std::set<std::tuple<size_t, size_t, std::vector<bool>>> masks;  // queries, keys, bits
  std::set<std::pair<uint32_t, uint32_t>> lengths;                // slots, queries
  // Left, right, hole or a row of PAD; causality; offset of positions; what they mean.
  std::set<std::tuple<std::string, Causal, int64_t, bool, bool>> paddings;
  uint64_t cases = 0;
};

bool has_padding(const Case& c, Found& found) {
  std::string where;
  for (const Op& op : c.ops) {
    const auto* step = std::get_if<op::Step>(&op);
    if (step == nullptr) continue;
    const op::StepRow& first = step->rows.front();
    if (first.pad_left > 0) where += "left ";
    if (first.pad_right > 0)
      where += where.empty() && step->rows.front().append > 1 ? "hole " : "right ";
    if (step->rows.back().append == 0) where += "row ";
  }
  if (where.empty()) return false;
  const bool rotates = c.shape.rope.pairing != RopePairing::kNone;
  const int64_t offset = std::get<op::Admit>(c.ops[0]).position_offset;
  found.paddings.insert({where, c.mask.causal, offset, c.shape.alibi, rotates});
  return true;
}

void look_at(const Case& c, Found& found) {
  ++found.cases;
  auto timeline = Timeline::create(c);
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  if (has_padding(c, found)) return;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    const PlannedStep step = timeline->apply(i);
    for (const PlannedRow& row : step.rows) {
      if (row.queries == 0) continue;
      const Sequence& sequence = timeline->sequence(row.request);
      Table table;
      for (const PageId page : sequence.pages) table.push_back(page.value);
      std::vector<bool> bits;
      for (uint32_t q = 0; q < row.queries; ++q) {
        for (uint32_t k = 0; k < row.kv_length; ++k) {
          bits.push_back(MaskRow(c, sequence, {q}).shows(k));
        }
      }
      if (c.mask.encoding == MaskEncoding::kBoolKeep) {
        found.masks.insert({row.queries, row.kv_length, bits});
      } else if (c.mask.encoding == MaskEncoding::kNone && c.pool.page_slots < 16) {
        found.tables.insert({c.pool.page_slots, table});
      } else if (c.pool.page_slots == 16) {
        found.lengths.insert({row.kv_length, row.queries});
      }
    }
  }
}

TEST(SmallCases, AreAllThereAndLawful) {
  Found found;
  Odometer choices;
  do {
    look_at(draw_small(choices), found);
    if (HasFatalFailure()) return;
  } while (choices.next());
  EXPECT_EQ(found.tables.size(), 3u * (4 + 4 * 3 + 4 * 3 * 2));
  uint64_t masks = 0;
  for (unsigned q = 1; q <= 4; ++q) {
    for (unsigned k = 1; k <= 4; ++k) masks += 1u << (q * k);
  }
  EXPECT_EQ(found.masks.size(), masks);
  EXPECT_EQ(masks, 74'954u);
  for (uint32_t slots = 1; slots <= 65; ++slots) {
    for (uint32_t queries = 1; queries <= std::min(slots, 17u); ++queries) {
      EXPECT_TRUE(found.lengths.contains({slots, queries})) << slots << " " << queries;
    }
    EXPECT_TRUE(found.lengths.contains({slots, slots})) << slots;
  }
  EXPECT_EQ(found.paddings.size(), 5u * 3 * 3 * 3);
  const auto counts = count_small_cases();
  EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], found.cases);
}

}  // namespace
}  // namespace kv
