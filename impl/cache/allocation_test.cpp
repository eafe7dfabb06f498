// The paged cache allocates nothing once it is made: every allocation of this program is counted.
#include <cstdlib>
#include <new>

#include "impl/cache/stamped_cache_test.h"

namespace {
int64_t allocations = 0;
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace kvattn {
namespace {

using namespace kvattn::testing;

PagedCacheConfig config() {
  return {.groups = {{.window_left = -1}, {.window_left = 9}},
          .pages = PageCount(64),
          .host_pages = PageCount(32),
          .page_slots = 4,
          .batch_slots = 4,
          .requests = 6,
          .context_limit = SlotCount(64),
          .step_slots_max = SlotCount(64),
          .overcommit = 8};
}

/// One life of a cache: every operation, several times over. Returns how many succeeded.
int serve(PagedCache& cache, std::span<const Token> tokens) {
  int done = 0;
  const auto count = [&](const auto& answer) { done += answer.ok(); };
  const auto handle = [&](uint32_t id) { return *cache.find(RequestId{id}); };
  for (int round = 0; round < 5; ++round) {
    for (uint32_t id : {1, 2}) {
      count(cache.admit({.request = RequestId{id},
                         .side_input = SideInput(static_cast<uint64_t>(id + 2 * (round % 2))),
                         .prompt = tokens.first(30),
                         .slots_max = SlotCount(64)}));
    }
    count(cache.fork(handle(1), RequestId{3}));
    for (int64_t step = 0; step < 3; ++step) {
      AppendRow rows[3];
      for (uint32_t i = 0; i < 3; ++i) {
        rows[i].handle = handle(i + 1);
        rows[i].tokens = tokens.subspan(rows[i].handle.length.value, 7);
      }
      const auto launched = cache.step(rows);
      count(launched);
      count(cache.complete(launched->number));
      const RequestId beams[] = {RequestId{1}, RequestId{2}, RequestId{3}};
      const RequestId sources[] = {RequestId{3}, RequestId{3}, RequestId{2}};
      count(cache.reorder(beams, sources));
    }
    count(cache.truncate(handle(1), handle(1).length - SlotCount(1)));
    count(cache.preempt_to_host(handle(2)));
    count(cache.resume(handle(2)));
    count(cache.preempt_to_recompute(handle(3)));
    count(cache.resume(handle(3)));
    count(cache.defrag());
    cache.evict(PageCount(3));
    for (uint32_t id : {1, 2, 3}) count(cache.release(handle(id)));
  }
  return done;
}

TEST(PagedCacheAllocation, NothingIsAllocatedAfterCreation) {
  PagedCache cache = *PagedCache::create(config());
  const std::vector<Token> tokens = some_tokens(1, 64);
  const int64_t before = allocations;
  const int done = serve(cache, tokens);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(done, 5 * (3 + 9 + 6 + 3))
      << "an operation was refused: the test shows less than it says";
  EXPECT_GT(cache.counters().copied_slots, 0u);
  EXPECT_GT(cache.counters().expired_pages, 0u);
  EXPECT_GT(cache.counters().hit_pages, 0u);
}

TEST(PagedCacheAllocation, TheCounterCounts) {
  const int64_t before = allocations;
  const std::vector<int> some(100);
  EXPECT_EQ(allocations, before + 1) << some.size();
}

}  // namespace
}  // namespace kvattn
