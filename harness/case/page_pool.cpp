#include "harness/case/page_pool.h"

#include <algorithm>

#include "harness/core/check.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr uint64_t kShuffleUse = 0x70616765;  // "page": this use of the data seed

// Fisher-Yates. The multiply-shift bias of 2^-44 for a million pages does not matter here; that
// the permutation is the same everywhere does.
void shuffle(std::vector<PageId>& pages, uint64_t seed) {
  const Philox philox{seed};
  for (uint64_t i = pages.size(); i > 1; --i) {
    const uint64_t word = philox.word(kShuffleUse, i) >> 32;
    std::swap(pages[i - 1], pages[word * i >> 32]);
  }
}

}  // namespace

PagePool::PagePool(const Pool& pool, uint64_t data_seed) {
  free_.reserve(pool.page_count);
  for (uint32_t page = 0; page < pool.page_count; ++page) free_.emplace_back(page);
  switch (pool.order) {
    case PageOrder::kIdentity:  // the back is taken first
      std::reverse(free_.begin(), free_.end());
      break;
    case PageOrder::kReversed:
      break;
    case PageOrder::kShuffled:
    case PageOrder::kFarApart:  // the distance is made by the strides of the pool's memory
      shuffle(free_, data_seed);
      break;
  }
}

PageId PagePool::take() {
  KV_CHECK(!free_.empty(), "no free page: Timeline::create must have refused this case");
  const PageId page = free_.back();
  free_.pop_back();
  return page;
}

void PagePool::give_back(std::span<const PageId> pages) {
  free_.insert(free_.end(), pages.rbegin(), pages.rend());
}

}  // namespace kv
