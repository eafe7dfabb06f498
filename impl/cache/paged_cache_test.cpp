// The paged cache, operation by operation; each slot is read back through its stamp.
#include "kvattn/paged_cache.h"

#include "impl/cache/stamped_cache_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

PagedCacheConfig config_of(int64_t pages, int64_t page_slots = 4) {
  return {.groups = {{}},
          .pages = PageCount(pages),
          .host_pages = PageCount(8),
          .page_slots = page_slots,
          .batch_slots = 4,
          .requests = 8,
          .context_limit = SlotCount(64),
          .step_slots_max = SlotCount(64),
          .overcommit = 100};
}

TEST(PagedCache, SharesFullPagesOfAPrefixAndNoOthers) {
  StampedCache cache(config_of(16));
  const auto prompt = some_tokens(1, 10);
  cache.serve(1, prompt);
  cache.serve(2, prompt);
  EXPECT_EQ(cache.cache.counters().hit_pages, 2u);
  EXPECT_EQ(cache.free_pages(), PageCount(16 - 4));
  cache.check();
  // A prompt of full pages is there to its last token; one token shorter, less by a page.
  cache.admit(3, some_tokens(1, 8));
  EXPECT_EQ(cache.length(3), 8);
  cache.admit(4, some_tokens(1, 7));
  EXPECT_EQ(cache.length(4), 4);
  cache.check();
}

TEST(PagedCache, FindsAPrefixAfterItsRequestEnded) {
  StampedCache cache(config_of(16));
  cache.serve(1, some_tokens(1, 8));
  cache.release(1);
  EXPECT_EQ(cache.cache.snapshot().cached_pages.size(), 2u);
  cache.admit(2, some_tokens(1, 9));
  EXPECT_EQ(cache.length(2), 8);
  cache.check();
}

TEST(PagedCache, KeepsSideInputsAndOffsetsApart) {
  StampedCache cache(config_of(16));
  const auto prompt = some_tokens(1, 8);
  cache.serve(1, prompt);
  Admission other{.request = RequestId{2},
                  .side_input = SideInput{9},
                  .prompt = prompt,
                  .slots_max = SlotCount(20)};
  ASSERT_TRUE(cache.try_admit(other).ok());
  EXPECT_EQ(cache.length(2), 0);
  other.request = RequestId{3};
  other.side_input = {};
  other.position_offset = 5;
  ASSERT_TRUE(cache.try_admit(other).ok());
  EXPECT_EQ(cache.length(3), 0);
}

TEST(PagedCache, ComparesTokensAndNotOnlyHashes) {
  PagedCacheConfig config = config_of(16);
  config.prefix_hash_bits = 0;  // every prefix collides with every other
  StampedCache cache(config);
  for (uint32_t id = 1; id <= 3; ++id) cache.serve(id, some_tokens(id, 8));
  cache.serve(4, some_tokens(2, 8));
  EXPECT_EQ(cache.cache.counters().hit_pages, 2u);
  cache.check();
}

TEST(PagedCache, ForksShareUntilTheyDiverge) {
  StampedCache cache(config_of(16));
  cache.serve(1, some_tokens(1, 6));
  cache.fork(1, 2);
  cache.fork(1, 3);
  EXPECT_EQ(cache.free_pages(), PageCount(14));
  ASSERT_TRUE(cache.try_step({{1, tokens_of({7})}, {2, tokens_of({8})}, {3, tokens_of({9})}}).ok());
  EXPECT_EQ(cache.cache.counters().copied_slots, 4u);  // two of the three copy two slots
  EXPECT_EQ(cache.free_pages(), PageCount(12));
  cache.check();
}

// [A0, A1, B0]: a swap, a 3-cycle and its inverse, repeats with a drop.
TEST(PagedCache, ReordersBeams) {
  using Sources = std::vector<uint32_t>;
  for (const Sources& sources : {Sources{3, 2, 1}, {2, 3, 1}, {3, 1, 2}, {1, 1, 3}, {2, 2, 2}}) {
    StampedCache cache(config_of(16));
    cache.serve(1, some_tokens(1, 6));
    cache.fork(1, 2);
    cache.serve(3, some_tokens(3, 9));
    ASSERT_TRUE(cache.try_step({{1, tokens_of({7})}, {2, tokens_of({8})}}).ok());
    cache.reorder({1, 2, 3}, sources);
    cache.check();
    ASSERT_TRUE(
        cache.try_step({{1, tokens_of({21})}, {2, tokens_of({22})}, {3, tokens_of({23})}}).ok());
    cache.check();
    for (uint32_t id : {1, 2, 3}) cache.release(id);
    cache.cache.evict(PageCount(16));
    EXPECT_EQ(cache.free_pages(), PageCount(16));
  }
}

TEST(PagedCache, RollsBackEveryNumberOfDrafts) {
  for (int64_t length = 3; length <= 9; ++length) {
    for (int64_t kept = 0; kept <= 4; ++kept) {
      StampedCache cache(config_of(16));
      cache.serve(1, some_tokens(1, length));
      const CacheSnapshot before = cache.cache.snapshot();
      cache.append(1, some_tokens(2, 4), {.speculative = 4});
      ASSERT_TRUE(cache.try_truncate(1, length + kept).ok());
      cache.check();
      if (kept == 0) {
        EXPECT_EQ(cache.cache.snapshot().reference_counts, before.reference_counts);
        EXPECT_EQ(cache.cache.snapshot().prefixes.size(), before.prefixes.size());
      }
      cache.append(1, some_tokens(3, 5));
      cache.check();
    }
  }
}

TEST(PagedCache, NeverWritesAPublishedPage) {
  StampedCache cache(config_of(16));
  cache.serve(1, some_tokens(1, 8));
  ASSERT_TRUE(cache.try_truncate(1, 6).ok());
  cache.append(1, tokens_of({5, 6, 7}));
  cache.check();  // the prefix of 8 tokens still has its bytes
  cache.serve(2, some_tokens(1, 9));
  EXPECT_EQ(cache.cache.counters().hit_pages, 2u);
  cache.check();
}

TEST(PagedCache, ClosesGapsWhereverTheyAre) {
  for (int64_t begin = 0; begin < 11; ++begin) {
    for (int64_t end = begin + 1; end <= 11; ++end) {
      StampedCache cache(config_of(16));
      cache.serve(1, some_tokens(1, 11));
      cache.fork(1, 2);
      ASSERT_TRUE(cache.try_shift(1, begin, end).ok());
      cache.check();
      cache.append(1, some_tokens(2, 6));
      cache.append(2, some_tokens(3, 6));
      cache.check();
    }
  }
}

TEST(PagedCache, PublishesNothingBehindAGap) {
  StampedCache cache(config_of(16));
  cache.serve(1, some_tokens(1, 8));
  ASSERT_TRUE(cache.try_shift(1, 0, 4).ok());
  cache.append(1, some_tokens(2, 4));
  const auto prompt = std::vector<Token>(cache.cache.tokens(cache.handle(1)).begin(),
                                         cache.cache.tokens(cache.handle(1)).end());
  cache.admit(2, prompt);
  EXPECT_EQ(cache.length(2), 0);
  cache.check();
}

TEST(PagedCache, LetsGoWhatNoWindowSees) {
  PagedCacheConfig config = config_of(32);
  config.groups = {{.layers = 2, .window_left = -1}, {.layers = 1, .window_left = 5}};
  StampedCache cache(config);
  cache.serve(1, some_tokens(1, 16));
  // The query at slot 15 sees slots 10 to 15: pages 2 and 3 of the second group remain.
  EXPECT_EQ(cache.cache.kept_from(cache.handle(1), Group{1}), SlotCount(8));
  EXPECT_EQ(cache.cache.kept_from(cache.handle(1), Group{0}), SlotCount(0));
  cache.check();
  EXPECT_EQ(cache.try_truncate(1, 13).code(), StatusCode::kRefused);
  ASSERT_TRUE(cache.try_truncate(1, 14).ok());
  EXPECT_EQ(cache.try_shift(1, 1, 2).code(), StatusCode::kRefused);
  cache.append(1, some_tokens(2, 9));
  cache.check();
}

// Where the gap is as wide as pages are, the window's edge stays where it is in its page.
TEST(PagedCache, ClosesGapsInFrontOfAWindow) {
  for (const int64_t begin : {0, 1, 3, 6, 9}) {
    PagedCacheConfig config = config_of(32);
    config.groups = {{.layers = 2, .window_left = -1}, {.layers = 1, .window_left = 5}};
    StampedCache cache(config);
    cache.serve(1, some_tokens(1, 16));
    cache.fork(1, 2);
    const Status closed = cache.try_shift(1, begin, begin + 4);
    // From slot 6 on, the next query would see what has expired: slots 6 and 7, in front of it.
    ASSERT_EQ(closed.ok(), begin < 6) << begin;
    cache.append(1, some_tokens(2, 9));
    cache.append(2, some_tokens(3, 3));
    cache.check();
  }
}

TEST(PagedCache, HitsAsFarAsEveryGroupReaches) {
  PagedCacheConfig config = config_of(32);
  config.groups = {{.window_left = -1}, {.window_left = 5}};
  StampedCache cache(config);
  for (int64_t first = 0; first < 16; first += 4) {
    if (first == 0) cache.admit(1, {});
    const auto all = some_tokens(1, 16);
    cache.append(1, {all.begin() + first, all.begin() + first + 4});
  }
  cache.release(1);
  cache.admit(2, some_tokens(1, 14));
  EXPECT_EQ(cache.length(2), 12);
  EXPECT_EQ(cache.cache.kept_from(cache.handle(2), Group{1}), SlotCount(4));
  cache.check();
}

TEST(PagedCache, SwapsAndResumes) {
  StampedCache cache(config_of(8));
  cache.serve(1, some_tokens(1, 11));
  cache.fork(1, 2);
  ASSERT_TRUE(cache.try_swap_out(1).ok());
  cache.check();
  cache.serve(3, some_tokens(3, 11));
  EXPECT_EQ(cache.cache.preempt_to_host(cache.handle(1)).status().code(), StatusCode::kRefused);
  cache.release(3);
  ASSERT_TRUE(cache.try_resume(1).ok());
  EXPECT_EQ(cache.length(1), 11);
  cache.append(1, tokens_of({1}));
  cache.append(2, tokens_of({2}));
  cache.check();
  EXPECT_EQ(cache.cache.counters().swapped_out_pages, 3u);
}

TEST(PagedCache, RecomputesOnlyWhatWasEvicted) {
  StampedCache cache(config_of(8));
  cache.serve(1, some_tokens(1, 11));
  cache.preempt(1);
  cache.check();
  EXPECT_EQ(cache.cache.evict(PageCount(1)), PageCount(1));  // the second page of the prefix
  ASSERT_TRUE(cache.try_resume(1).ok());
  EXPECT_EQ(cache.length(1), 4);
  cache.check();
  ASSERT_TRUE(cache.try_swap_out(1).ok());
  cache.release(1);
  cache.check();
}

TEST(PagedCache, EvictsTheLeastRecentlyUsedFirst) {
  StampedCache cache(config_of(6));
  cache.serve(1, some_tokens(1, 8));
  cache.serve(2, some_tokens(2, 8));
  cache.release(1);
  cache.release(2);
  cache.admit(3, some_tokens(1, 8));  // uses the first again
  cache.release(3);
  cache.serve(4, some_tokens(4, 16));
  EXPECT_EQ(cache.cache.counters().evicted_pages, 2u);
  cache.admit(5, some_tokens(1, 8));
  EXPECT_EQ(cache.length(5), 8);
  cache.check();
}

TEST(PagedCache, MovesEverythingToTheFront) {
  StampedCache cache(config_of(16));
  for (uint32_t id = 1; id <= 3; ++id) cache.serve(id, some_tokens(id, 7));
  cache.fork(3, 4);
  cache.release(1);
  cache.cache.evict(PageCount(1));
  cache.append(4, tokens_of({1}));
  cache.release(2);  // leaves a cached page
  cache.defrag();
  cache.check();
  const CacheSnapshot s = cache.cache.snapshot();
  for (Page page : s.free_pages) EXPECT_GE(index_of(page), 16 - std::ssize(s.free_pages));
  cache.append(3, tokens_of({2}));
  cache.serve(5, some_tokens(2, 7));
  EXPECT_EQ(cache.cache.counters().hit_pages, 1u);
  cache.check();
}

TEST(PagedCache, RestoresWithoutTrustingWhatItRestores) {
  StampedCache cache(config_of(16));
  const auto tokens = some_tokens(1, 9);
  const Restoration restoration{.admission = {.request = RequestId{1}, .slots_max = SlotCount(20)},
                                .tokens = tokens};
  ASSERT_TRUE(cache.cache.restore(restoration).ok());
  EXPECT_EQ(cache.length(1), 9);
  EXPECT_EQ(cache.free_pages(), PageCount(13));
  EXPECT_TRUE(cache.cache.complete(cache.cache.step({})->number).ok());
  EXPECT_TRUE(cache.cache.snapshot().prefixes.empty());
}

}  // namespace
}  // namespace kvattn
