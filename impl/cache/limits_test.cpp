// What the paged cache refuses, that a refusal changes nothing, and when pages may be used again.
#include "impl/cache/stamped_cache_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

PagedCacheConfig small() {
  return {.groups = {{}},
          .pages = PageCount(7),
          .host_pages = PageCount(2),
          .page_slots = 4,
          .page_bytes = ByteCount(1000),
          .batch_slots = 2,
          .requests = 3,
          .context_limit = SlotCount(24),
          .step_slots_max = SlotCount(24),
          .steps_in_flight_max = 2};
}

/// All that a snapshot shows, as text.
std::string text_of(const PagedCache& cache) {
  const CacheSnapshot s = cache.snapshot();
  std::string text;
  const auto add = [&](const auto& ids) {
    for (auto id : ids) text += sentence(index_of(id), " ");
    text += "; ";
  };
  add(s.free_pages), add(s.fenced_pages), add(s.cached_pages), add(s.host_free_pages);
  add(s.steps_in_flight);
  for (uint32_t n : s.reference_counts) text += sentence(n, " ");
  for (const RequestSnapshot& r : s.requests) {
    text += sentence("request ", index_of(r.request), " ", static_cast<int>(r.state), " ",
                     index_of(r.batch_slot), " ", r.length, ": ");
    for (const auto& table : r.tables) add(table);
  }
  for (const PrefixSnapshot& p : s.prefixes) add(p.tokens), add(p.pages);
  return text;
}

template <class T>
Status status_of(const StatusOr<T>& value) {
  return value.status();
}
Status status_of(const Status& status) { return status; }

#define EXPECT_REFUSAL(want, expression)                                    \
  do {                                                                      \
    const std::string before = text_of(cache.cache);                        \
    EXPECT_EQ(status_of(expression).code(), StatusCode::want);              \
    EXPECT_EQ(text_of(cache.cache), before) << "the refusal left a change"; \
  } while (false)

TEST(PagedCacheLimits, AdmitsByTheWorstCase) {
  StampedCache cache(small());
  EXPECT_EQ(cache.cache.worst_case(SlotCount(17)), ByteCount(5000));
  cache.admit(1, {}, 17);
  Admission next{.request = RequestId{2}, .slots_max = SlotCount(9)};
  EXPECT_REFUSAL(kExhausted, cache.cache.admit(next));  // 3 pages, 2 are left
  next.slots_max = SlotCount(25);
  EXPECT_REFUSAL(kRefused, cache.cache.admit(next));  // past the context limit
  next.slots_max = SlotCount(8);
  EXPECT_TRUE(cache.cache.admit(next).ok());
  next.request = RequestId{3};
  next.slots_max = SlotCount(0);
  EXPECT_REFUSAL(kExhausted, cache.cache.admit(next));  // no batch slot
  cache.preempt(1);
  EXPECT_TRUE(cache.cache.admit(next).ok());
  EXPECT_REFUSAL(kExhausted, cache.cache.resume(cache.handle(1)));
  EXPECT_TRUE(cache.cache.release(cache.handle(2)).ok());
  EXPECT_TRUE(cache.cache.resume(cache.handle(1)).ok());
  EXPECT_REFUSAL(kRefused, cache.cache.admit({.request = RequestId{1}}));  // exists
}

TEST(PagedCacheLimits, RefusesRowsThatDoNotFit) {
  StampedCache cache(small());
  cache.admit(1, {}, 10);
  cache.append(1, some_tokens(1, 5));
  cache.admit(2, {}, 10);
  const auto one = tokens_of({1});
  const Handle good = cache.handle(1);
  const auto step = [&](const Handle& handle, DType dtype = DType::kF16) {
    const AppendRow row{.handle = handle, .tokens = one, .dtype = dtype};
    return cache.cache.step({&row, 1});
  };
  using Spoil = void (*)(Handle&);
  for (Spoil spoil :
       {Spoil([](Handle& h) { h.length = SlotCount(4); }),
        Spoil([](Handle& h) { h.length = SlotCount(6); }),
        Spoil([](Handle& h) { h.ticket = Ticket{99}; }),
        Spoil([](Handle& h) { h.request = RequestId{2}; }),
        Spoil([](Handle& h) { h.request = RequestId{7}; }),
        Spoil([](Handle& h) { h.owner = Owner{1}; }),
        Spoil([](Handle& h) { h.batch_slot = BatchSlot{1}; }),
        Spoil([](Handle& h) { h.layers = 2; }), Spoil([](Handle& h) { h.position_offset = 1; })}) {
    Handle bad = good;
    spoil(bad);
    EXPECT_REFUSAL(kRefused, step(bad));
  }
  EXPECT_REFUSAL(kRefused, step(good, DType::kBF16));
  EXPECT_REFUSAL(kRefused, cache.try_step({{1, some_tokens(2, 6)}}));  // 11 slots
  const AppendRow twice[] = {{.handle = good, .tokens = one}, {.handle = good, .tokens = one}};
  EXPECT_REFUSAL(kRefused, cache.cache.step(twice));
  // The second row's refusal undoes the first.
  const AppendRow rows[] = {{.handle = good, .tokens = one}, {.handle = {}, .tokens = one}};
  EXPECT_REFUSAL(kRefused, cache.cache.step(rows));
  EXPECT_TRUE(step(good).ok());
  EXPECT_REFUSAL(kRefused, step(good));  // its length has grown since
  EXPECT_TRUE(cache.cache.release(good).ok());
  EXPECT_REFUSAL(kRefused, step(good));
}

TEST(PagedCacheLimits, RefusesOtherCallsThatCannotBe) {
  StampedCache cache(small());
  cache.admit(1, {}, 10);
  cache.append(1, some_tokens(1, 9));
  EXPECT_REFUSAL(kRefused, cache.try_truncate(1, 10));
  EXPECT_REFUSAL(kRefused, cache.try_truncate(1, -1));
  EXPECT_REFUSAL(kRefused, cache.try_shift(1, 3, 3));
  EXPECT_REFUSAL(kRefused, cache.try_shift(1, 3, 10));
  EXPECT_REFUSAL(kRefused, cache.try_resume(1));
  EXPECT_REFUSAL(kExhausted, cache.try_swap_out(1));  // 3 pages, 2 host pages
  EXPECT_REFUSAL(kRefused, cache.cache.fork(cache.handle(1), RequestId{1}));
  EXPECT_REFUSAL(kRefused, cache.cache.complete(StepNumber{1}));
  const RequestId beams[] = {RequestId{1}, RequestId{1}}, strange[] = {RequestId{1}, RequestId{2}};
  EXPECT_REFUSAL(kRefused, cache.cache.reorder(beams, beams));
  EXPECT_REFUSAL(kRefused, cache.cache.reorder(strange, strange));
  EXPECT_REFUSAL(kRefused, cache.cache.reorder({beams, 1}, {strange + 1, 1}));
}

TEST(PagedCacheLimits, BeamsStayWithinOneOwner) {
  StampedCache cache(small());
  cache.admit(1, {}, 4);
  ASSERT_TRUE(cache.try_admit({.request = RequestId{2}, .owner = Owner{5}}).ok());
  const RequestId beams[] = {RequestId{1}, RequestId{2}};
  EXPECT_REFUSAL(kRefused, cache.cache.reorder(beams, beams));
}

TEST(PagedCacheLimits, ShortageRefusesAWholeStep) {
  PagedCacheConfig config = small();
  config.overcommit = 3;
  StampedCache cache(config);
  cache.admit(1, {}, 24);
  cache.append(1, some_tokens(1, 20));
  cache.admit(2, {}, 24);
  EXPECT_REFUSAL(kExhausted, cache.try_step({{1, some_tokens(2, 4)}, {2, some_tokens(3, 5)}}));
  EXPECT_TRUE(cache.try_step({{1, some_tokens(2, 4)}, {2, some_tokens(3, 4)}}).ok());
  cache.check();
}

TEST(PagedCacheLimits, EveryAllocationMayFail) {
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    StampedCache cache(small());
    cache.admit(1, {}, 12);
    cache.cache.fail_allocation(nth);
    EXPECT_REFUSAL(kExhausted, cache.try_step({{1, some_tokens(1, 9)}}));
    EXPECT_TRUE(cache.try_step({{1, some_tokens(1, 9)}}).ok());  // it fails once
    cache.cache.fail_allocation(nth);
    if (nth <= 2) EXPECT_REFUSAL(kExhausted, cache.try_shift(1, 1, 2));
    cache.check();
  }
}

// A page whose request is gone waits for the step that was launched with it.
TEST(PagedCacheLimits, PagesInFlightAreNotReused) {
  StampedCache cache(small());
  cache.admit(1, {}, 24);
  cache.append(1, some_tokens(1, 8), {.complete = false});
  const StepNumber first = cache.last_step;
  cache.release(1);
  EXPECT_EQ(cache.free_pages(), PageCount(5));
  cache.admit(2, {}, 24);
  EXPECT_REFUSAL(kExhausted, cache.try_step({{2, some_tokens(2, 24)}}));
  EXPECT_REFUSAL(kRefused, cache.cache.defrag());
  cache.append(2, some_tokens(2, 4), {.complete = false});
  EXPECT_TRUE(cache.cache.complete(first).ok());
  EXPECT_EQ(cache.free_pages(), PageCount(6));
  EXPECT_TRUE(cache.cache.snapshot().prefixes.empty());  // the cancelled request published nothing
  cache.check();
}

TEST(PagedCacheLimits, WhatIsInFlightIsNotPublished) {
  StampedCache cache(small());
  cache.admit(1, {}, 10);
  cache.append(1, some_tokens(1, 5), {.complete = false});
  EXPECT_TRUE(cache.cache.snapshot().prefixes.empty());
  // A second step follows before the first has ended; the first is published all the same.
  const StepNumber first = cache.last_step;
  cache.append(1, some_tokens(2, 1), {.complete = false});
  EXPECT_TRUE(cache.cache.complete(first).ok());
  EXPECT_EQ(cache.cache.snapshot().prefixes.size(), 1u);
  cache.check();
}

TEST(PagedCacheLimits, RefusesSizesThatCannotBe) {
  using Spoil = void (*)(PagedCacheConfig&);
  for (Spoil spoil : {Spoil([](PagedCacheConfig& c) { c.groups.clear(); }),
                      Spoil([](PagedCacheConfig& c) { c.groups[0].layers = 0; }),
                      Spoil([](PagedCacheConfig& c) { c.groups[0].window_left = -2; }),
                      Spoil([](PagedCacheConfig& c) { c.pages = PageCount(0); }),
                      Spoil([](PagedCacheConfig& c) { c.page_slots = 3; }),
                      Spoil([](PagedCacheConfig& c) { c.requests = 1; }),
                      Spoil([](PagedCacheConfig& c) { c.overcommit = 0; }),
                      Spoil([](PagedCacheConfig& c) { c.context_limit = SlotCount(-1); })}) {
    PagedCacheConfig config = small();
    spoil(config);
    EXPECT_EQ(PagedCache::create(config).status().code(), StatusCode::kRefused);
  }
}

}  // namespace
}  // namespace kvattn
