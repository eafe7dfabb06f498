#include "impl/cache/page_pool.h"

#include <algorithm>
#include <cassert>

namespace kvattn {

PagePool::PagePool(PageCount pages) : records_(pages.value) {
  free_.reserve(pages.value);
  fenced_.reserve(pages.value);
  free_in_order(PageCount(0));
}

void PagePool::free_in_order(PageCount used) {
  free_.clear();
  for (int64_t page = size().value; page > used.value; --page) {
    free_.push_back(static_cast<Page>(page - 1));
  }
}

Page PagePool::take(Group group) {
  assert(!free_.empty());
  const Page page = free_.back();
  free_.pop_back();
  record(page) = {.references = 1, .group = group};
  return page;
}

void PagePool::hold(Page page) {
  if (record(page).references++ == 0) unlink(page);
}

bool PagePool::drop(Page page, StepNumber last) {
  Record& r = record(page);
  assert(r.references > 0);
  r.last_step = std::max(r.last_step, last);
  if (--r.references > 0) return false;
  if (r.node != kNoNode) {
    link(page);
    return false;
  }
  (is_in_flight(r) ? fenced_ : free_).push_back(page);
  return is_in_flight(r);
}

PageCount PagePool::evictable(PageCount enough) const {
  PageCount count;
  for (Page page = oldest_; page != kNoPage && count < enough; page = record(page).newer) {
    if (!is_in_flight(record(page))) count += PageCount(1);
  }
  return count;
}

Page PagePool::oldest_evictable() const {
  Page page = oldest_;
  while (page != kNoPage && is_in_flight(record(page))) page = record(page).newer;
  return page;
}

void PagePool::evict(Page page) {
  assert(record(page).references == 0 && !is_in_flight(record(page)));
  unlink(page);
  record(page).node = kNoNode;
  free_.push_back(page);
}

void PagePool::complete(StepNumber step) {
  completed_ = std::max(completed_, step);
  std::erase_if(fenced_, [this](Page page) {
    if (is_in_flight(record(page))) return false;
    free_.push_back(page);
    return true;
  });
}

void PagePool::relocate(Page from, Page to) {
  Record& r = record(to);
  r = record(from);
  if (r.older != kNoPage) record(r.older).newer = to;
  if (r.newer != kNoPage) record(r.newer).older = to;
  if (oldest_ == from) oldest_ = to;
  if (newest_ == from) newest_ = to;
  record(from) = {};
}

void PagePool::link(Page page) {
  Record& r = record(page);
  r.older = newest_;
  r.newer = kNoPage;
  (newest_ == kNoPage ? oldest_ : record(newest_).newer) = page;
  newest_ = page;
}

void PagePool::unlink(Page page) {
  Record& r = record(page);
  (r.older == kNoPage ? oldest_ : record(r.older).newer) = r.newer;
  (r.newer == kNoPage ? newest_ : record(r.newer).older) = r.older;
  r.older = r.newer = kNoPage;
}

}  // namespace kvattn
