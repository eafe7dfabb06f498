#include "kvattn/pool.h"

#include <gtest/gtest.h>

#include <set>

#include "impl/serving_test.h"

namespace kvattn {
namespace {

using testing::take;

constexpr AttentionShape kShape = {.query_heads = 2,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .page_slots = 16,
                                   .dtype = DType::kF16,
                                   .scale = 0.125f};

TEST(KvPool, HandsOutEveryPageOnceAndTakesItBack) {
  KvPool pool = take(KvPool::create(kShape, {.layers = 1, .pages = 5}));
  std::vector<Page> first = take(pool.acquire(2)), second = take(pool.acquire(3));
  std::set<Page> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(pool.acquire(1).status().code(), StatusCode::kRefused);
  EXPECT_TRUE(pool.release(first).ok());
  EXPECT_EQ(pool.free_pages(), 2);
  EXPECT_TRUE(pool.acquire(2).ok());
}

TEST(KvPool, RefusesPagesThatAreNotHeldAndChangesNothing) {
  KvPool pool = take(KvPool::create(kShape, {.layers = 1, .pages = 5}));
  const std::vector<Page> held = take(pool.acquire(2));
  for (const std::vector<Page>& bad :
       {std::vector<Page>{held[0], held[0]}, {held[1], Page{4}}, {Page{-1}}, {Page{5}}}) {
    EXPECT_EQ(pool.release(bad).code(), StatusCode::kRefused);
    EXPECT_EQ(pool.free_pages(), 3);
  }
  EXPECT_TRUE(pool.release(held).ok());
}

TEST(KvPool, LaysOutLayersWithoutOverlap) {
  KvPool pool = take(KvPool::create(kShape, {.layers = 3, .pages = 5}));
  BlockTable table = take(BlockTable::create({.requests = 1, .pages_max = 1}));
  const int64_t bytes = 5 * 16 * 2 * 64 * 2;
  const auto* base = static_cast<const char*>(take(pool.layer(0, table)).key.data);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const CacheView cache = take(pool.layer(layer, table));
    EXPECT_EQ(cache.key.data, base + 2 * layer * bytes);
    EXPECT_EQ(cache.value.data, base + (2 * layer + 1) * bytes);
  }
  EXPECT_EQ(pool.layer(3, table).status().code(), StatusCode::kRefused);
}

TEST(KvPool, RefusesSizesThatCannotBe) {
  for (KvPool::Size size : {KvPool::Size{0, 1},
                            {1, 0},
                            {-1, 4},
                            {1, int64_t{1} << 31},
                            {int64_t{1} << 30, int64_t{1} << 30}}) {
    EXPECT_EQ(KvPool::create(kShape, size).status().code(), StatusCode::kRefused);
  }
}

TEST(BlockTable, RefusesMoreThanItHolds) {
  BlockTable table = take(BlockTable::create({.requests = 1, .pages_max = 2}));
  const std::vector<Page> three = {Page{0}, Page{1}, Page{2}};
  EXPECT_EQ(table.upload({three}, nullptr).code(), StatusCode::kRefused);
  const std::span<const Page> two(three.data(), 2);
  EXPECT_EQ(table.upload({two, two}, nullptr).code(), StatusCode::kRefused);
  EXPECT_TRUE(table.upload({two}, nullptr).ok());
  EXPECT_EQ(BlockTable::create({.requests = 0, .pages_max = 2}).status().code(),
            StatusCode::kRefused);
}

}  // namespace
}  // namespace kvattn
