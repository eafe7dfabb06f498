#include "harness/run/batch.h"

#include <gtest/gtest.h>

#include <cstring>
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
  EXPECT_EQ(plugin_shape(c).padding, uint32_t{KV_PAD_LEFT | KV_PAD_RIGHT | KV_PAD_HOLES});
  std::get<op::Step>(c.ops[3]).rows[1].append = 0;
  EXPECT_EQ(plugin_shape(c).padding, uint32_t{KV_PAD_LEFT | KV_PAD_RIGHT}) << "no token follows";
}

// 0/1 for each element of a mask tensor, whatever its encoding.
std::vector<uint8_t> shown(const Case& c, const MaskTensor& mask) {
  const bool packed = c.mask.encoding == MaskEncoding::kPackedBits;
  const size_t bytes = packed ? 4 : mask.type.bits / 8;
  std::vector<uint8_t> shown;
  for (size_t at = 0; at < mask.bytes.size(); at += bytes) {
    uint32_t code = 0;
    std::memcpy(&code, &mask.bytes[at], bytes);
    if (packed) {
      for (int64_t bit = 0; bit < 10; ++bit) shown.push_back(code >> bit & 1);  // ten slots
    } else if (c.mask.encoding == MaskEncoding::kAdditive) {
      shown.push_back(decode(c.mask.additive_dtype, code) == 0);
    } else {
      shown.push_back(code == (c.mask.encoding == MaskEncoding::kBoolKeep));
    }
  }
  return shown;
}

TEST(Mask, EveryEncodingShowsTheSame) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Case c = two_requests();
    c.data.seed = seed;
    c.mask.encoding = MaskEncoding::kBoolKeep;
    c.mask.broadcast_head = false;
    const Batch keep = last_batch(c);
    EXPECT_EQ(keep.mask.shape, (std::array<int64_t, 4>{2, 1, 4, 10}));
    const std::vector<uint8_t> want = shown(c, keep.mask);
    ASSERT_EQ(want.size(), 2u * 4 * 10);
    for (size_t i = 40 + 10; i < want.size(); ++i) EXPECT_EQ(want[i], 1) << "past the only query";
    for (size_t i = 3; i < 10; ++i) EXPECT_EQ(want[i], 1) << "past the slots of request 1";
    for (const MaskEncoding encoding :
         {MaskEncoding::kPackedBits, MaskEncoding::kBoolBlock, MaskEncoding::kAdditive}) {
      c.mask.encoding = encoding;
      EXPECT_EQ(shown(c, last_batch(c).mask), want);
    }
    for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
      c.mask.additive_dtype = type;
      c.mask.additive_finite_minimum = true;
      EXPECT_EQ(shown(c, last_batch(c).mask), want);
    }
  }
}

TEST(Mask, ATreeHidesOtherBranches) {
  Case c = two_requests();
  std::get<op::Step>(c.ops[3]).rows[0] = {.request = RequestId(1),
                                          .append = 3,
                                          .pad_left = 1,
                                          .queries = 4,
                                          .tree_parents = {-1, 0, 0}};
  const TreeMask tree = last_batch(c).tree;
  EXPECT_EQ(tree.columns, 1);
  EXPECT_EQ(tree.first_slots, (std::vector<int32_t>{0, 9}));
  // Slots of request 1: PAD, root, and its two children, which do not see each other.
  const std::vector<uint32_t> want = {0b1111, 0b0011, 0b0111, 0b1011, 0b1111};
  ASSERT_EQ(tree.words.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(tree.words[i] & 0b1111, want[i]) << i;
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
