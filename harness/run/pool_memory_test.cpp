// The pool on the CPU device; writes of "the plugin" are copies, as any host code could make them.
#include "harness/run/pool_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace kv {
namespace {

const CudaRuntime& runtime() {
  static const CudaRuntime runtime = [] {
    setenv("KVERIFY_SIMT", KV_BUILD_DIR "/lib/simt/libcudart.so.13", 0);
    return load_runtime(DeviceKind::kCpu).value();
  }();
  return runtime;
}

Case pool_case(PageOrder order, CacheLayout layout) {
  Case c;
  c.shape.kv_heads = c.shape.query_heads = 2;
  c.shape.head_dim_k = 4;
  c.pool = {.page_slots = 2, .page_count = 5, .order = order, .layout = layout};
  return c;
}

class PoolMemoryTest : public testing::TestWithParam<std::pair<PageOrder, CacheLayout>> {};

TEST_P(PoolMemoryTest, ReportsExactlyThePagesThatChanged) {
  runtime().control->reset();
  const Case c = pool_case(GetParam().first, GetParam().second);
  PoolMemory pool = PoolMemory::create(c, {.layer = 3, .value = false}, runtime()).value();
  EXPECT_TRUE(pool.changed_pages({}).value().empty());

  Tensor tensor = pool.tensor();
  const DLTensor view = tensor.view();
  if (GetParam().first == PageOrder::kFarApart) {
    EXPECT_GT(view.strides[0] * 2, int64_t{1} << 32);
  }
  // Page 2, slot 1, head 1, dimension 3.
  const int64_t element = 2 * view.strides[0] + view.strides[1] + view.strides[2] + 3;
  const uint16_t bits = 0x1234;
  runtime().copy(static_cast<uint16_t*>(view.data) + element, &bits, 2, CopyKind::kHostToDevice);
  const auto images = pool.changed_pages({}).value();
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].layer, 3u);
  EXPECT_EQ(images[0].page, PageId(2));
  ASSERT_EQ(images[0].bytes.size(), 2u * 2 * 4 * 2);
  for (size_t i = 0; i < images[0].bytes.size() / 2; ++i) {
    uint16_t got = 0;
    std::memcpy(&got, &images[0].bytes[2 * i], 2);
    EXPECT_EQ(got, i == 15 ? 0x1234 : 0xffff) << i;  // dense: [slot][head][dimension]
  }
  EXPECT_TRUE(pool.changed_pages({}).value().empty());
}

TEST_P(PoolMemoryTest, ReportsExpectedPagesEvenUnchanged) {
  runtime().control->reset();
  const Case c = pool_case(GetParam().first, GetParam().second);
  PoolMemory pool = PoolMemory::create(c, {}, runtime()).value();
  const std::vector<PageId> expected = {PageId(0), PageId(4)};
  const auto images = pool.changed_pages(expected).value();
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].page, PageId(0));
  EXPECT_EQ(images[1].page, PageId(4));
}

// Fails when what lies between K's rows, V's in an interleaved layout, could be written unseen.
TEST(PoolMemory, AWriteBetweenTheRowsIsATrespass) {
  runtime().control->reset();
  const Case c = pool_case(PageOrder::kShuffled, CacheLayout::kInterleaved);
  PoolMemory pool = PoolMemory::create(c, {}, runtime()).value();
  EXPECT_FALSE(pool.damaged_red_zone().value().has_value());
  Tensor tensor = pool.tensor();
  const DLTensor view = tensor.view();
  EXPECT_EQ(view.strides[1], 16);  // twice the heads' dimensions
  const uint16_t bits = 0x1234;
  runtime().copy(static_cast<uint16_t*>(view.data) + 8, &bits, 2, CopyKind::kHostToDevice);
  EXPECT_EQ(pool.changed_pages({}).value().size(), 1u);
  const auto damage = pool.damaged_red_zone().value();
  ASSERT_TRUE(damage.has_value());
  EXPECT_NE(damage->tensor.find("between the rows"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PoolMemoryTest,
                         testing::Values(std::pair(PageOrder::kShuffled, CacheLayout::kSlotHead),
                                         std::pair(PageOrder::kShuffled, CacheLayout::kHeadSlot),
                                         std::pair(PageOrder::kShuffled, CacheLayout::kInterleaved),
                                         std::pair(PageOrder::kFarApart, CacheLayout::kInterleaved),
                                         std::pair(PageOrder::kFarApart, CacheLayout::kSlotHead),
                                         std::pair(PageOrder::kFarApart, CacheLayout::kHeadSlot)));

}  // namespace
}  // namespace kv
