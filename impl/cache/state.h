// Purpose: what a PagedCache consists of, and the steps that its operations are made of.
// Contract: an operation checks everything first (`why_not...`, `require...`), then reserves the
// pages it will take, which is the last thing that can fail, and only then changes anything.
// Example:  step.cpp reads in this order.
#pragma once

#include <array>
#include <limits>

#include "impl/cache/page_pool.h"
#include "impl/cache/prefix_index.h"
#include "kvattn/paged_cache.h"

namespace kvattn {

/// Slots that a launched step has appended: written once it completes.
struct PendingWrite {
  StepNumber step = {};
  int64_t end = 0;
};

/// What a request holds: all that moves when beams are reordered.
struct Content {
  PrefixRoot root;
  SlotCount slots_max;
  std::vector<Token> tokens;              // of all stored slots; of a preempted request: of all
                                          // slots it had
  std::vector<std::vector<Page>> tables;  // [group]; of a swapped request: host pages
  std::vector<int64_t> kept;              // [group] pages before this one have expired
  int64_t settled = 0;                    // slots before this one are not speculative
  int64_t written = 0;                    // slots before this one hold their bytes
  int64_t path_slots = std::numeric_limits<int64_t>::max();  // slots that a gap does not precede
  NodeId node = kNoNode;  // of the published prefix, `depth` pages
  int64_t depth = 0;
  StepNumber last_step = {};
  std::array<PendingWrite, kStepsInFlightMax> pending = {};
  int pending_count = 0;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
};

/// A request's own: what stays when beams are reordered.
struct Request {
  bool exists = false;
  RequestState state = RequestState::kActive;
  RequestId id = {};
  Owner owner = {};
  Ticket ticket = {};
  BatchSlot batch_slot = kNoBatchSlot;
  bool has_row = false;  // in the step that is being checked
  int32_t content = 0;
};

struct PagedCache::State {
  explicit State(const PagedCacheConfig& c);

  PagedCacheConfig config;
  PagePool pool;
  PrefixIndex index;
  std::vector<Request> requests;
  std::vector<Content> contents;
  std::vector<HostPage> host_free;  // the last is taken next
  std::vector<Request*> batch;      // [batch slot]; nullptr: free
  std::array<StepNumber, kStepsInFlightMax> in_flight = {};
  int in_flight_count = 0;
  StepNumber launched = {};
  uint64_t tickets = 0;
  uint64_t failing_allocation = 0;  // the n-th page taken from now on; 0: none
  CacheCounters counters;

  // Reused by every operation; they have their room from the start.
  std::vector<SlotCopy> copies;
  std::vector<HostCopy> host_copies;
  std::vector<int64_t> page_scratch;     // [page], zero between operations
  std::vector<int32_t> request_scratch;  // [request]
  std::vector<NodeId> node_scratch;      // the path of a prompt
  std::vector<int64_t> run_scratch;      // [group]

  int32_t group_count() const { return static_cast<int32_t>(config.groups.size()); }
  int64_t page_slots() const { return config.page_slots; }
  int64_t window(int32_t group) const { return config.groups[group].window_left; }
  Content& content(const Request& r) { return contents[r.content]; }
  const Content& content(const Request& r) const { return contents[r.content]; }

  // Who is meant (requests.cpp).
  Request* find(RequestId id);
  /// The same, at once when the handle's batch slot is right.
  Request* find(const Handle& handle);
  StatusOr<Request*> require(const Handle& handle);
  StatusOr<Request*> require_active(const char* operation, const Handle& handle);
  Handle handle_of(const Request& r) const;

  // Room (room.cpp).
  PageCount worst_pages(SlotCount slots_max) const;
  PageCount budget() const;     // of worst cases
  PageCount committed() const;  // worst cases of the active requests
  Status why_no_budget(const char* operation, SlotCount slots_max) const;
  Status why_no_request(const char* operation, RequestId id, SlotCount slots_max) const;
  Status why_no_room(const char* operation, PageCount pages) const;
  /// Ok: `pages` can be taken now.
  Status reserve(const char* operation, PageCount pages);
  bool allocation_fails(PageCount pages);
  void evict_oldest();
  void join_batch(Request& r);
  Request& create_request(RequestId id, Owner owner);

  // What a request holds (holdings.cpp).
  void reset(Content& c);
  void copy(const Content& from, Content& to);
  void drop_page(Content& c, int32_t group, int64_t page);
  /// Drops the pages from `pages` on, the last first.
  void drop_tail(Content& c, int64_t pages);
  void drop_all(Content& c);
  void expire(Content& c);
  int64_t first_needed_page(int32_t group, int64_t length) const;
  void cut_path(Content& c, int64_t depth);
  void cut_written(Content& c, int64_t length);

  // Steps (step.cpp).
  Status why_no_append(const AppendRow& row);
  Status why_no_rows(std::span<const AppendRow> rows);
  PageCount pages_needed(std::span<const AppendRow> rows);
  /// Makes the partial last page of a group exclusively the request's own.
  void own_tail(Content& c, int32_t group);
  void append_row(const AppendRow& row);
  void settle_writes(Content& c, StepNumber step);

  // Beams (beams.cpp).
  Status why_no_reorder(std::span<const RequestId> beams, std::span<const RequestId> sources);

  // Rewinding (rewind.cpp).
  void cut(Content& c, int64_t length);
  PageCount pages_shifted(const Content& c, SlotRange gap) const;
  Status why_no_shift(const Handle& handle, SlotRange gap);
  void copy_shifted(Content& c, int32_t group, SlotRange gap);
  void drop_shifted(Content& c, int32_t group, SlotRange gap);

  // Preemption (preempt.cpp).
  void leave_batch(Request& r, RequestState state);
  void return_host_pages(Content& c);
  PageCount pages_present(const Content& c) const;
  int32_t slots_of_page(const Content& c, int64_t page) const;
  void swap_in(Content& c);
  void recall_prefix(Content& c);

  // Moving pages (defrag.cpp).
  void count_live_slots();
  void rename_pages();

  // The prefix index (prefixes.cpp).
  int64_t match(const PrefixRoot& root, std::span<const Token> prompt);
  void hold_prefix(Content& c, int64_t pages);
  void publish(Content& c);
};

}  // namespace kvattn
