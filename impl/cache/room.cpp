// Whether there is room: worst cases against the budget, pages against the pool.
#include <algorithm>
#include <cassert>

#include "impl/cache/state.h"

namespace kvattn {

// A window keeps what the query before the first unsettled slot sees, what the steps in flight
// append, and the tokens of the step before them, which may all be speculative.
PageCount PagedCache::State::worst_pages(SlotCount slots_max) const {
  PageCount pages;
  for (int32_t g = 0; g < group_count(); ++g) {
    int64_t slots = slots_max.value;
    const int64_t appended = (config.steps_in_flight_max + 1) * config.step_slots_max.value;
    if (window(g) >= 0 && window(g) < slots - appended - 2 * page_slots()) {
      slots = window(g) + 1 + appended + page_slots();
    }
    pages += pages_for(SlotCount(slots), page_slots());
  }
  return pages;
}

PageCount PagedCache::State::budget() const {
  return PageCount(static_cast<int64_t>(config.overcommit * config.pages.value));
}

PageCount PagedCache::State::committed() const {
  PageCount pages;
  for (const Request& r : requests) {
    if (r.exists && r.state == RequestState::kActive) pages += worst_pages(content(r).slots_max);
  }
  return pages;
}

Status PagedCache::State::why_no_budget(const char* operation, SlotCount slots_max) const {
  const int64_t bytes = config.page_bytes.value;
  const PageCount worst = worst_pages(slots_max), left = budget() - committed();
  if (worst > budget()) {
    return refused(operation, ": expected a worst case of at most ", budget().value * bytes,
                   " bytes, the whole budget, got ", worst.value * bytes);
  }
  if (worst > left) {
    return exhausted(operation, ": expected a worst case of at most ", left.value * bytes,
                     " bytes, what is left of the budget, got ", worst.value * bytes);
  }
  if (std::ranges::find(batch, nullptr) == batch.end()) {
    return exhausted(operation, ": all ", config.batch_slots, " batch slots are taken");
  }
  return {};
}

Status PagedCache::State::why_no_request(const char* operation, RequestId id,
                                         SlotCount slots_max) const {
  if (slots_max.value < 0 || slots_max > config.context_limit) {
    return refused(operation, ": expected 0 to ", config.context_limit, " slots at most, got ",
                   slots_max);
  }
  bool has_room = false;
  for (const Request& r : requests) {
    has_room |= !r.exists;
    if (r.exists && r.id == id) {
      return refused(operation, ": request ", index_of(id), " exists already");
    }
  }
  if (!has_room) return exhausted(operation, ": all ", config.requests, " requests are taken");
  return why_no_budget(operation, slots_max);
}

bool PagedCache::State::allocation_fails(PageCount pages) {
  const auto count = static_cast<uint64_t>(pages.value);
  if (failing_allocation == 0) return false;
  const bool fails = count >= failing_allocation;
  failing_allocation = fails ? 0 : failing_allocation - count;
  return fails;
}

Status PagedCache::State::why_no_room(const char* operation, PageCount pages) const {
  const PageCount missing = pages - pool.free_pages();
  const PageCount evictable = missing.value > 0 ? pool.evictable(missing) : PageCount(0);
  if (evictable >= missing) return {};
  return exhausted(operation, ": expected ", pages, " pages, got ", pool.free_pages(), " free and ",
                   evictable, " that could be evicted");
}

Status PagedCache::State::reserve(const char* operation, PageCount pages) {
  KVATTN_RETURN_IF_ERROR(why_no_room(operation, pages));
  if (allocation_fails(pages)) return exhausted(operation, ": an allocation was made to fail");
  while (pool.free_pages() < pages) evict_oldest();
  return {};
}

void PagedCache::State::evict_oldest() {
  const Page page = pool.oldest_evictable();
  assert(page != kNoPage);
  index.remove_page(pool.node(page), pool.group(page));
  pool.evict(page);
  ++counters.evicted_pages;
}

PageCount PagedCache::evict(PageCount pages) {
  PageCount evicted;
  while (evicted < pages && state_->pool.oldest_evictable() != kNoPage) {
    state_->evict_oldest();
    evicted += PageCount(1);
  }
  return evicted;
}

void PagedCache::State::join_batch(Request& r) {
  const auto slot = std::ranges::find(batch, nullptr);
  assert(slot != batch.end());
  *slot = &r;
  r.batch_slot = static_cast<BatchSlot>(slot - batch.begin());
  r.state = RequestState::kActive;
}

Request& PagedCache::State::create_request(RequestId id, Owner owner) {
  const auto r = std::ranges::find(requests, false, &Request::exists);
  assert(r != requests.end());
  r->exists = true;
  r->id = id;
  r->owner = owner;
  r->ticket = static_cast<Ticket>(++tickets);
  join_batch(*r);
  return *r;
}

ByteCount PagedCache::worst_case(SlotCount slots_max) const {
  return ByteCount(state_->worst_pages(slots_max).value * state_->config.page_bytes.value);
}

void PagedCache::fail_allocation(uint64_t nth) { state_->failing_allocation = nth; }

}  // namespace kvattn
