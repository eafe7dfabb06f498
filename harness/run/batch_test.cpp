#include "harness/run/batch.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/run/device_buffer.h"
#include "harness/run/shape.h"
#include "harness/run/tensor.h"

namespace kv {
namespace {

Case two_requests() {
  Case c;
  c.pool.page_slots = 4;
  c.pool.page_count = 8;
  c.pool.order = PageOrder::kIdentity;
  const RequestId a(0), b(1);
  c.ops = {op::Admit{.request = a, .prompt_tokens = 9, .position_offset = 100},
           op::Admit{.request = b, .prompt_tokens = 2},
           op::Step{.rows = {{.request = a, .append = 9, .queries = 9}}},
           op::Step{.rows = {{.request = b, .append = 2, .pad_left = 1, .queries = 4},
                             {.request = a, .append = 1, .queries = 1}}}};
  return c;
}

Batch last_batch(const Case& c) {
  Timeline timeline = Timeline::create(c).value();
  PlannedStep step;
  for (uint32_t i = 0; i < c.ops.size(); ++i) step = timeline.apply(i);
  return make_batch(c, timeline, step);
}

TEST(Batch, LaysRowsOutInBatchOrder) {
  const Batch batch = last_batch(two_requests());
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_EQ(batch.append_offsets, (std::vector<int32_t>{0, 3, 4}));
  EXPECT_EQ(batch.query_offsets, (std::vector<int32_t>{0, 4, 5}));
  EXPECT_EQ(batch.first_slots, (std::vector<int32_t>{0, 9}));
  EXPECT_EQ(batch.kv_lengths, (std::vector<int32_t>{3, 10}));
  EXPECT_EQ(batch.key_begin, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(batch.key_end, (std::vector<int32_t>{3, 10}));
  EXPECT_EQ(batch.append_positions, (std::vector<int64_t>{0, 0, 1, 109}));
  EXPECT_EQ(batch.query_positions.size(), 5u);
  EXPECT_EQ(batch.query_positions.back(), 109);
}

TEST(Batch, NamesThePagesThatTheAppendWrites) {
  EXPECT_EQ(last_batch(two_requests()).written_pages, (std::vector<PageId>{PageId(2), PageId(3)}));
}

// Nobody may follow an entry past a row's last page: it is never a page that a live row holds.
TEST(Batch, FillsTheTailsOfTheBlockTableWithGarbage) {
  bool saw_poison_page = false, saw_no_page = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Case c = two_requests();
    c.data.seed = seed;
    const Batch batch = last_batch(c);
    ASSERT_EQ(batch.table_columns, 4u);
    EXPECT_EQ(batch.block_table[0], 3);  // request 1's page; request 0 holds 0, 1, 2
    for (const size_t tail : {1, 2, 3, 7}) {
      const int32_t page = batch.block_table[tail];
      const bool poison_page = page >= 4 && page < 8;
      EXPECT_TRUE(poison_page || page < 0 || page >= 8) << page;
      (poison_page ? saw_poison_page : saw_no_page) = true;
    }
  }
  EXPECT_TRUE(saw_poison_page);
  EXPECT_TRUE(saw_no_page);
}

TEST(Shape, DeclaresThePaddingOfAllSteps) {
  EXPECT_EQ(plugin_shape(two_requests()).padding, uint32_t{KV_PAD_LEFT});
  Case c = two_requests();
  std::get<op::Step>(c.ops[2]).rows[0].pad_right = 1;
  EXPECT_EQ(plugin_shape(c).padding, uint32_t{KV_PAD_LEFT | KV_PAD_RIGHT});
}

TEST(Shape, StridesFollowTheLayout) {
  Case c = two_requests();
  c.shape.kv_heads = 2;
  c.shape.query_heads = 2;
  const PageStrides slot_head = page_strides(c, 64);
  EXPECT_EQ(slot_head.page, 4 * 2 * 64);
  EXPECT_EQ(slot_head.slot, 2 * 64);
  EXPECT_EQ(slot_head.head, 64);
  c.pool.layout = CacheLayout::kHeadSlot;
  const PageStrides head_slot = page_strides(c, 64);
  EXPECT_EQ(head_slot.page, 4 * 2 * 64);
  EXPECT_EQ(head_slot.slot, 64);
  EXPECT_EQ(head_slot.head, 4 * 64);
}

TEST(Tensor, IsDenseUnlessToldOtherwise) {
  Tensor tensor(nullptr, kDlFloat32, {3, 5, 7});
  const DLTensor view = tensor.view();
  EXPECT_EQ(view.strides[0], 35);
  EXPECT_EQ(view.strides[1], 7);
  EXPECT_EQ(view.strides[2], 1);
  EXPECT_EQ(view.device.device_type, kDLCUDA);
}

TEST(FirstChange, FindsTheFirstByteAndCountsAll) {
  const std::vector<std::byte> want(16, std::byte{1});
  EXPECT_FALSE(first_change("query", want, want).has_value());
  std::vector<std::byte> got = want;
  got[5] = std::byte{9};
  got[7] = std::byte{9};
  const auto change = first_change("query", want, got);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->offset_bytes, 5u);
  EXPECT_EQ(change->bytes_changed, 2u);
  EXPECT_EQ(change->want, 1);
  EXPECT_EQ(change->got, 9);
}

}  // namespace
}  // namespace kv
