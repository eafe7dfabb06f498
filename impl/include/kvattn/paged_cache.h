// Purpose: who holds which page of a paged KV cache: block tables, reference counts, shared
// prefixes, beams, sliding windows, preemption, eviction. Host code alone: the bytes of K and V are
// moved by the caller, who is told which.
//
// Contract:
//  - Layers that share a window form a group, with block tables of its own; all groups take pages
//    from one pool. A page belongs to one group at a time.
//  - A page is owned (some block table holds it), cached (published in the prefix index, held by
//    nobody: evicted when room is needed, least recently used first), fenced (held by nobody, but a
//    launched step may still touch it) or free.
//  - A written page is exclusively owned and unpublished; a step that would write another one
//    copies it first (`copies`). Full pages are published when the step that fills them completes.
//  - An index entry is found by the hash of its tokens and confirmed by all of them, and by the
//    side input, along the whole prefix.
//  - Every operation is atomic: a status other than ok has changed nothing. kExhausted: no room
//    now; kRefused: never lawful.
//  - Nothing is allocated after create, but for what snapshot() returns and the text of a refusal.
//  - Copies that an operation returns are to be enqueued before any later work, in their order, on
//    the stream of the steps. Returned spans live until the next operation.
//  - One thread at a time.
//
// Example:
//   PagedCache cache = *PagedCache::create({.pages = PageCount(4096), ...});
//   Handle h = *cache.admit({.request = RequestId{7}, .prompt = tokens, ...});
//   const AppendRow row = {.handle = h, .tokens = tokens.subspan(h.length.value)};
//   LaunchedStep step = *cache.step({&row, 1});
//   // enqueue step.copies, write K and V of the new slots to cache.table(h, group), attend; then
//   cache.complete(step.number);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvattn/cache_snapshot.h"
#include "kvattn/status.h"
#include "kvattn/tensor.h"
#include "kvattn/units.h"

namespace kvattn {

/// Steps that may be in flight at once.
constexpr int kStepsInFlightMax = 4;

struct LayerGroup {
  int32_t layers = 1;
  int64_t window_left = -1;  // inclusive; -1: unlimited
};

struct PagedCacheConfig {
  std::vector<LayerGroup> groups;
  PageCount pages, host_pages;
  int64_t page_slots = 16;      // a power of two
  ByteCount page_bytes{1};      // of one page: K and V of all layers of a group
  DType dtype = DType::kF16;    // of what the pages hold
  int32_t batch_slots = 1;      // active requests
  int32_t requests = 1;         // existing requests, preempted ones included
  SlotCount context_limit;      // of one request
  SlotCount step_slots_max;     // that one row of a step appends
  int steps_in_flight_max = 1;  // up to kStepsInFlightMax
  double overcommit = 1.0;      // admitted worst cases <= overcommit * bytes of the pool
  bool prefix_index = true;
  int32_t prefix_hash_bits = 64;  // fewer only to make collisions happen
};

/// Names one admitted request and what its holder believes of it.
struct Handle {
  RequestId request = {};
  Owner owner = {};
  Ticket ticket = {};
  BatchSlot batch_slot = kNoBatchSlot;
  int32_t layers = 0;  // of all groups
  SlotCount length;    // stored slots
  int64_t position_offset = 0;
  bool operator==(const Handle&) const = default;
};

struct Admission {
  RequestId request = {};
  Owner owner = {};
  SideInput side_input = {};
  std::span<const Token> prompt = {};
  SlotCount slots_max;  // the request never holds more: its worst case
  int64_t position_offset = 0;
};

struct AppendRow {
  Handle handle;  // with the stored length, where the tokens go
  std::span<const Token> tokens = {};
  SlotCount speculative;  // of them, the last ones that truncate may take back
  bool branches = false;  // they are a tree: no prefix that admit may find, nor what follows them
  DType dtype = DType::kF16;
};

/// Slots of one page of one group to be copied to another page, in every layer of the group.
struct SlotCopy {
  Group group = {};
  Page from = kNoPage, to = kNoPage;
  int32_t from_slot = 0, to_slot = 0, slots = 0;
  bool operator==(const SlotCopy&) const = default;
};
/// A page that goes to the host pool or comes back: its first `slots` slots.
struct HostCopy {
  Group group = {};
  Page page = kNoPage;
  HostPage host_page = {};
  int32_t slots = 0;
};

struct LaunchedStep {
  StepNumber number = {};
  std::span<const SlotCopy> copies;  // before anything is written
};
struct Resumed {
  Handle handle;  // its length: slots that hold bytes; after a recompute the rest is appended again
  std::span<const HostCopy> copies;  // from the host, after a swap
};
struct SlotRange {
  SlotCount begin, end;
};
/// A request whose bytes come from elsewhere: tables are allocated, the caller fills them.
struct Restoration {
  Admission admission;            // the prompt is not looked at
  std::span<const Token> tokens;  // of all its slots
};

class PagedCache {
 public:
  /// Ok: create() will take it.
  static Status check_config(const PagedCacheConfig& config);
  static StatusOr<PagedCache> create(const PagedCacheConfig& config);
  PagedCache(PagedCache&&) noexcept;
  PagedCache& operator=(PagedCache&&) noexcept;
  ~PagedCache();

  /// Takes a batch slot and the pages of the longest published prefix of the prompt: handle.length
  /// slots are there already, all of the prompt at most. Takes no other page and evicts none.
  StatusOr<Handle> admit(const Admission& admission);

  /// Launches a step that appends to each row's request, distinct requests all: copies shared tail
  /// pages, takes new ones, evicts for them. Fails as a whole.
  StatusOr<LaunchedStep> step(std::span<const AppendRow> rows);
  /// What step() would answer, but for an allocation made to fail.
  Status check_step(std::span<const AppendRow> rows) const;

  /// The step and all before it have ended: their pages may be reused, what they filled is
  /// published, what no later query sees expires.
  Status complete(StepNumber step);

  /// A child that holds all that the parent holds, under its own id.
  StatusOr<Handle> fork(const Handle& parent, RequestId child);

  /// beams[i] continues what sources[i] was; ids, batch slots and tickets stay. Beams are distinct,
  /// sources are among them, all have one owner.
  Status reorder(std::span<const RequestId> beams, std::span<const RequestId> sources);

  /// Keeps the first `length` slots. Refused when that needs slots which a window has let go.
  Status truncate(const Handle& handle, SlotCount length);

  /// Drops slots [begin, end) and closes the gap. Refused when the next query would then see slots
  /// that a window has let go. What follows the gap is not published.
  StatusOr<std::span<const SlotCopy>> shift(const Handle& handle, SlotRange gap);
  /// What shift() would answer, but for an allocation made to fail.
  Status check_shift(const Handle& handle, SlotRange gap) const;

  /// The request ends, whatever its state, and whatever is in flight.
  Status release(const Handle& handle);

  /// Gives up batch slot and pages, keeps the tokens.
  Status preempt_to_recompute(const Handle& handle);
  /// Moves the pages to the host pool.
  StatusOr<std::span<const HostCopy>> preempt_to_host(const Handle& handle);
  StatusOr<Resumed> resume(const Handle& handle);

  /// Evicts up to `pages` cached pages; returns how many.
  PageCount evict(PageCount pages);

  /// Moves held and cached pages to the front of the pool. Refused while steps are in flight.
  StatusOr<std::span<const SlotCopy>> defrag();

  StatusOr<Handle> restore(const Restoration& restoration);

  /// The current handle of a request, in any state; refused when there is none.
  StatusOr<Handle> find(RequestId request) const;

  // Of an existing request; the handle's identity must be right, its length is not looked at.
  std::span<const Page> table(const Handle& handle, Group group) const;
  std::span<const Token> tokens(const Handle& handle) const;
  RequestState state(const Handle& handle) const;
  SideInput side_input(const Handle& handle) const;
  SlotCount slots_max(const Handle& handle) const;
  /// Slots before this one have expired in the group; whole pages.
  SlotCount kept_from(const Handle& handle, Group group) const;

  /// Worst-case bytes of a request that never holds more than `slots_max` slots.
  ByteCount worst_case(SlotCount slots_max) const;

  const PagedCacheConfig& config() const;
  const CacheCounters& counters() const;
  CacheSnapshot snapshot() const;

  /// The n-th page or host page taken from now on is not to be had (1-based; 0: take that back).
  void fail_allocation(uint64_t nth);

 private:
  struct State;
  explicit PagedCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvattn
