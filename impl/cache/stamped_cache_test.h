// Purpose: a PagedCache whose pages hold stamps instead of K and V, for its tests: who reads a slot
// finds out whose token was written there.
// Contract: the stamp of a token is a hash of the side input and of every token before it. check()
// recounts every reference, sees that the four lists partition the pool, and reads every kept slot
// and every published page. Operations must succeed; try_* hand on the status.
// Example:  StampedCache cache(config); cache.admit(1, prompt); cache.append(1, {7, 8});
// cache.check();
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kvattn/paged_cache.h"

namespace kvattn::testing {

using Stamp = uint64_t;

inline Stamp next_stamp(Stamp before, Token token) {
  uint64_t x = (before ^ index_of(token)) * 0xbf58476d1ce4e5b9u;
  return (x ^ (x >> 31)) * 0x94d049bb133111ebu + 1;
}

inline std::vector<Token> tokens_of(std::initializer_list<uint64_t> ids) {
  std::vector<Token> tokens;
  for (uint64_t id : ids) tokens.push_back(Token{id});
  return tokens;
}
/// `count` tokens that follow from `seed`.
inline std::vector<Token> some_tokens(uint64_t seed, int64_t count) {
  std::vector<Token> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(Token{seed * 1000 + i});
  return tokens;
}

struct StepOptions {
  int64_t speculative = 0;
  bool complete = true;
};

class StampedCache {
 public:
  explicit StampedCache(const PagedCacheConfig& config)
      : cache(*PagedCache::create(config)),
        device_(config.pages.value, Page_(config.page_slots)),
        host_(config.host_pages.value, Page_(config.page_slots)) {}

  Handle handle(uint32_t id) const { return *cache.find(RequestId{id}); }
  int64_t length(uint32_t id) const { return handle(id).length.value; }
  PageCount free_pages() const { return PageCount(std::ssize(cache.snapshot().free_pages)); }

  Status try_admit(const Admission& a) {
    StatusOr<Handle> h = cache.admit(a);
    if (!h.ok()) return h.status();
    const Stamp root = index_of(a.side_input) * 31 + a.position_offset;
    Expected& e = expected_[index_of(a.request)] = {.root = root};
    for (int64_t i = 0; i < h->length.value; ++i) e.append(a.prompt[i]);
    return {};
  }
  void admit(uint32_t id, const std::vector<Token>& prompt, int64_t slots_max = 64) {
    ok(try_admit({.request = RequestId{id}, .prompt = prompt, .slots_max = SlotCount(slots_max)}));
  }

  /// Appends to several requests at once.
  Status try_step(const std::map<uint32_t, std::vector<Token>>& rows, StepOptions options = {}) {
    std::vector<AppendRow> calls;
    for (const auto& [id, tokens] : rows) {
      calls.push_back(
          {.handle = handle(id), .tokens = tokens, .speculative = SlotCount(options.speculative)});
    }
    StatusOr<LaunchedStep> step = cache.step(calls);
    if (!step.ok()) return step.status();
    apply(step->copies);
    for (const auto& [id, tokens] : rows) write(id, tokens);
    last_step = step->number;
    return options.complete ? cache.complete(step->number) : Status();
  }
  void append(uint32_t id, const std::vector<Token>& tokens, StepOptions options = {}) {
    ok(try_step({{id, tokens}}, options));
  }
  /// Admits, and appends what the cache does not have.
  void serve(uint32_t id, const std::vector<Token>& prompt, int64_t slots_max = 64) {
    admit(id, prompt, slots_max);
    append(id, {prompt.begin() + length(id), prompt.end()});
  }

  void fork(uint32_t parent, uint32_t child) {
    ok(cache.fork(handle(parent), RequestId{child}).status());
    expected_[child] = expected_[parent];
  }
  void reorder(const std::vector<uint32_t>& beams, const std::vector<uint32_t>& sources) {
    std::vector<RequestId> b, s;
    for (uint32_t id : beams) b.push_back(RequestId{id});
    for (uint32_t id : sources) s.push_back(RequestId{id});
    ok(cache.reorder(b, s));
    const auto before = expected_;
    for (size_t i = 0; i < beams.size(); ++i) expected_[beams[i]] = before.at(sources[i]);
  }
  Status try_truncate(uint32_t id, int64_t length) {
    const Status status = cache.truncate(handle(id), SlotCount(length));
    if (status.ok()) expected_[id].stamps.resize(length);
    return status;
  }
  Status try_shift(uint32_t id, int64_t begin, int64_t end) {
    auto copies = cache.shift(handle(id), {SlotCount(begin), SlotCount(end)});
    if (!copies.ok()) return copies.status();
    apply(*copies);
    Expected& e = expected_[id];
    e.stamps.erase(e.stamps.begin() + begin, e.stamps.begin() + end);
    return {};
  }
  void release(uint32_t id) {
    ok(cache.release(handle(id)));
    expected_.erase(id);
  }
  Status try_swap_out(uint32_t id) {
    auto copies = cache.preempt_to_host(handle(id));
    if (!copies.ok()) return copies.status();
    for (const HostCopy& c : *copies) copy(c, device_[index_of(c.page)], host_of(c));
    return {};
  }
  void preempt(uint32_t id) { ok(cache.preempt_to_recompute(handle(id))); }
  Status try_resume(uint32_t id) {
    auto resumed = cache.resume(handle(id));
    if (!resumed.ok()) return resumed.status();
    for (const HostCopy& c : resumed->copies) copy(c, host_of(c), device_[index_of(c.page)]);
    expected_[id].stamps.resize(resumed->handle.length.value);
    return {};
  }
  void defrag() {
    auto copies = cache.defrag();
    ok(copies.status());
    apply(*copies);
  }

  void check() const;

  PagedCache cache;
  StepNumber last_step = {};

 private:
  using Page_ = std::vector<Stamp>;
  struct Expected {
    Stamp root = 0;
    std::vector<Stamp> stamps = {};
    Stamp last() const { return stamps.empty() ? root : stamps.back(); }
    void append(Token token) { stamps.push_back(next_stamp(last(), token)); }
  };
  static void ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.text(); }
  void write(uint32_t id, const std::vector<Token>& tokens) {
    for (Token token : tokens) {
      const auto slot = std::ssize(expected_[id].stamps);
      expected_[id].append(token);
      for (int32_t g = 0; g < std::ssize(cache.config().groups); ++g) {
        const Page page = cache.table(handle(id), Group{g})[slot / cache.config().page_slots];
        if (page == kNoPage) continue;
        device_[index_of(page)][slot % cache.config().page_slots] = expected_[id].stamps.back() + g;
      }
    }
  }
  void apply(std::span<const SlotCopy> copies) {
    for (const SlotCopy& c : copies) {
      for (int32_t s = 0; s < c.slots; ++s) {
        device_[index_of(c.to)][c.to_slot + s] = device_[index_of(c.from)][c.from_slot + s];
      }
    }
  }
  Page_& host_of(const HostCopy& c) { return host_[index_of(c.host_page)]; }
  static void copy(const HostCopy& c, const Page_& from, Page_& to) {
    std::copy_n(from.begin(), c.slots, to.begin());
  }
  void check_partition(const CacheSnapshot& s) const;
  void check_slots(const CacheSnapshot& s) const;
  void check_prefixes(const CacheSnapshot& s) const;

  std::map<uint32_t, Expected> expected_;
  std::vector<Page_> device_, host_;
};

inline void StampedCache::check() const {
  const CacheSnapshot s = cache.snapshot();
  check_partition(s);
  check_slots(s);
  check_prefixes(s);
}

inline void StampedCache::check_partition(const CacheSnapshot& s) const {
  std::vector<uint32_t> references(s.reference_counts.size());
  size_t host_pages = s.host_free_pages.size();
  for (const RequestSnapshot& r : s.requests) {
    for (const auto& table : r.tables) {
      for (Page page : table) {
        if (page == kNoPage) continue;
        r.state == RequestState::kSwapped ? ++host_pages : ++references[index_of(page)];
      }
    }
  }
  ASSERT_EQ(references, s.reference_counts);
  ASSERT_EQ(host_pages, host_.size());
  std::multiset<Page> lists(s.free_pages.begin(), s.free_pages.end());
  lists.insert(s.fenced_pages.begin(), s.fenced_pages.end());
  lists.insert(s.cached_pages.begin(), s.cached_pages.end());
  for (size_t p = 0; p < references.size(); ++p) {
    ASSERT_EQ(lists.count(static_cast<Page>(p)), references[p] == 0 ? 1u : 0u) << "page " << p;
  }
}

inline void StampedCache::check_slots(const CacheSnapshot& s) const {
  ASSERT_EQ(s.requests.size(), expected_.size());
  const int64_t page_slots = cache.config().page_slots;
  for (const RequestSnapshot& r : s.requests) {
    if (r.state == RequestState::kPreempted) continue;
    const auto& stamps = expected_.at(index_of(r.request)).stamps;
    ASSERT_EQ(r.length.value, std::ssize(stamps));
    for (size_t g = 0; g < r.tables.size(); ++g) {
      ASSERT_EQ(std::ssize(r.tables[g]), pages_for(r.length, page_slots).value);
      for (int64_t slot = 0; slot < std::ssize(stamps); ++slot) {
        const Page page = r.tables[g][slot / page_slots];
        if (page == kNoPage) continue;
        const auto& pool = r.state == RequestState::kSwapped ? host_ : device_;
        ASSERT_EQ(pool[index_of(page)][slot % page_slots], stamps[slot] + g)
            << "request " << index_of(r.request) << ", slot " << slot << ", group " << g;
      }
    }
  }
}

inline void StampedCache::check_prefixes(const CacheSnapshot& s) const {
  std::set<Page> published;
  std::vector<Stamp> ends;
  for (const PrefixSnapshot& p : s.prefixes) {
    ASSERT_LT(p.parent, std::ssize(ends));
    Stamp stamp = p.parent < 0 ? index_of(p.side_input) * 31 + p.position_offset : ends[p.parent];
    for (size_t i = 0; i < p.tokens.size(); ++i) {
      stamp = next_stamp(stamp, p.tokens[i]);
      for (size_t g = 0; g < p.pages.size(); ++g) {
        if (p.pages[g] == kNoPage) continue;
        ASSERT_EQ(device_[index_of(p.pages[g])][i], stamp + g);
        ASSERT_TRUE(i > 0 || published.insert(p.pages[g]).second) << "one page, two keys";
      }
    }
    ends.push_back(stamp);
  }
  for (Page page : s.cached_pages) ASSERT_TRUE(published.contains(page));
}

}  // namespace kvattn::testing
