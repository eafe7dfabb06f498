// Creation, admission, release.
#include "kvattn/paged_cache.h"

#include <algorithm>
#include <bit>

#include "impl/cache/state.h"

namespace kvattn {

Status PagedCache::check_config(const PagedCacheConfig& c) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (c.groups.empty()) return refused("cache: expected at least one group of layers");
  for (const LayerGroup& g : c.groups) {
    if (g.layers < 1 || g.window_left < -1) {
      return refused("cache: expected 1 or more layers and a window of -1 or more, got ", g.layers,
                     " and ", g.window_left);
    }
  }
  struct Bound {
    const char* name;
    int64_t value, low, high;
  };
  for (const Bound& b : {Bound{"pages", c.pages.value, 1, kMax},
                         {"host pages", c.host_pages.value, 0, kMax},
                         {"slots in a page", c.page_slots, 1, kMax},
                         {"bytes in a page", c.page_bytes.value, 1, kMax},
                         {"batch slots", c.batch_slots, 1, kMax},
                         {"requests", c.requests, c.batch_slots, kMax},
                         {"slots of a request", c.context_limit.value, 1, kMax},
                         {"steps in flight", c.steps_in_flight_max, 1, kStepsInFlightMax},
                         {"slots of a step", c.step_slots_max.value, 1, kMax},
                         {"bits of a prefix hash", c.prefix_hash_bits, 0, 64}}) {
    if (b.value < b.low || b.value > b.high) {
      return refused("cache: expected ", b.low, " to ", b.high, " ", b.name, ", got ", b.value);
    }
  }
  if (!std::has_single_bit(static_cast<uint64_t>(c.page_slots))) {
    return refused("cache: expected a power of two of slots in a page, got ", c.page_slots);
  }
  if (!(c.overcommit > 0 && c.overcommit <= 1e6)) {
    return refused("cache: expected an overcommit above 0, up to 1e6, got ", c.overcommit);
  }
  return {};
}

PagedCache::State::State(const PagedCacheConfig& c)
    : config(c),
      pool(c.pages),
      // A node for each page, and as many again for prefixes whose own pages were evicted.
      index({.nodes = c.prefix_index ? 2 * c.pages.value : 0,
             .page_slots = c.page_slots,
             .groups = std::ssize(c.groups),
             .hash_bits = c.prefix_hash_bits}),
      requests(c.requests),
      contents(c.requests),
      batch(c.batch_slots),
      page_scratch(c.pages.value),
      run_scratch(c.groups.size()) {
  const int64_t pages_max = pages_for(c.context_limit, c.page_slots).value;
  for (int32_t i = 0; i < c.requests; ++i) {
    requests[i].content = i;
    Content& content = contents[i];
    content.tokens.reserve(c.context_limit.value);
    content.tables.resize(c.groups.size());
    content.kept.resize(c.groups.size());
    // A shift holds old and new pages for a moment.
    for (auto& table : content.tables) table.reserve(2 * pages_max + 1);
  }
  host_free.reserve(c.host_pages.value);
  for (int64_t page = c.host_pages.value; page > 0; --page) {
    host_free.push_back(static_cast<HostPage>(page - 1));
  }
  const int64_t groups = std::ssize(c.groups);
  copies.reserve(std::max({c.batch_slots * groups, 2 * (pages_max + 1) * groups, c.pages.value}));
  host_copies.reserve(pages_max * groups);
  request_scratch.reserve(2 * c.requests);
  node_scratch.reserve(pages_max);
}

StatusOr<PagedCache> PagedCache::create(const PagedCacheConfig& config) {
  if (Status s = check_config(config); !s.ok()) return s;
  return PagedCache(std::make_unique<State>(config));
}

PagedCache::PagedCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
PagedCache::PagedCache(PagedCache&&) noexcept = default;
PagedCache& PagedCache::operator=(PagedCache&&) noexcept = default;
PagedCache::~PagedCache() = default;
const PagedCacheConfig& PagedCache::config() const { return state_->config; }
const CacheCounters& PagedCache::counters() const { return state_->counters; }

StatusOr<Handle> PagedCache::admit(const Admission& a) {
  State& s = *state_;
  KVATTN_RETURN_IF_ERROR(s.why_no_request("admit", a.request, a.slots_max));
  if (std::ssize(a.prompt) > a.slots_max.value) {
    return refused("admit: expected a prompt of at most ", a.slots_max, " tokens, got ",
                   a.prompt.size());
  }
  Request& r = s.create_request(a.request, a.owner);
  Content& c = s.content(r);
  c.root = {.side_input = a.side_input, .position_offset = a.position_offset};
  c.slots_max = a.slots_max;
  const int64_t pages = s.match(c.root, a.prompt);
  c.tokens.assign(a.prompt.begin(), a.prompt.begin() + pages * s.page_slots());
  s.hold_prefix(c, pages);
  return s.handle_of(r);
}

StatusOr<Handle> PagedCache::restore(const Restoration& restoration) {
  State& s = *state_;
  const Admission& a = restoration.admission;
  KVATTN_RETURN_IF_ERROR(s.why_no_request("restore", a.request, a.slots_max));
  const int64_t length = std::ssize(restoration.tokens);
  if (length > a.slots_max.value) {
    return refused("restore: expected at most ", a.slots_max, " slots, got ", length);
  }
  const int64_t pages = pages_for(SlotCount(length), s.page_slots()).value;
  PageCount needed;
  for (int32_t g = 0; g < s.group_count(); ++g) {
    needed += PageCount(pages - s.first_needed_page(g, length));
  }
  KVATTN_RETURN_IF_ERROR(s.reserve("restore", needed));
  Request& r = s.create_request(a.request, a.owner);
  Content& c = s.content(r);
  c.root = {.side_input = a.side_input, .position_offset = a.position_offset};
  c.slots_max = a.slots_max;
  c.tokens.assign(restoration.tokens.begin(), restoration.tokens.end());
  c.settled = c.written = length;
  c.path_slots = 0;  // bytes from elsewhere are nobody else's prefix
  for (int32_t g = 0; g < s.group_count(); ++g) {
    c.kept[g] = s.first_needed_page(g, length);
    for (int64_t p = 0; p < pages; ++p) {
      c.tables[g].push_back(p < c.kept[g] ? kNoPage : s.pool.take(Group{g}));
    }
  }
  return s.handle_of(r);
}

Status PagedCache::release(const Handle& handle) {
  State& s = *state_;
  StatusOr<Request*> found = s.require(handle);
  if (!found.ok()) return found.status();
  Request& r = **found;
  Content& c = s.content(r);
  if (r.state == RequestState::kSwapped) s.return_host_pages(c);
  s.drop_all(c);
  s.reset(c);
  if (r.batch_slot != kNoBatchSlot) s.batch[index_of(r.batch_slot)] = nullptr;
  r.exists = false;
  r.batch_slot = kNoBatchSlot;
  return {};
}

}  // namespace kvattn
