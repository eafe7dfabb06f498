// Purpose: what a PagedCache believes, for checks and for people.
// Contract: plain values, a copy, but for the tokens and pages of prefixes, which live until the
// next operation; making one allocates and is no part of serving.
// Example:  for (const auto& r : cache.snapshot().requests) print(r.request, r.tables[0]);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvattn/units.h"

namespace kvattn {

enum class RequestState : uint8_t { kActive, kPreempted, kSwapped };

struct RequestSnapshot {
  RequestId request = {};
  RequestState state = RequestState::kActive;
  BatchSlot batch_slot = kNoBatchSlot;
  Owner owner = {};
  Ticket ticket = {};
  SideInput side_input = {};
  SlotCount length;
  int64_t position_offset = 0;
  /// [group][page of the request]; kNoPage: expired. Of a swapped request: host pages.
  std::vector<std::vector<Page>> tables;
};

/// A node of the prefix tree.
struct PrefixSnapshot {
  int32_t parent = -1;    // an earlier entry
  uint64_t identity = 0;  // no other prefix ever has it
  SideInput side_input = {};
  int64_t position_offset = 0;
  std::span<const Token> tokens;  // of one page
  std::span<const Page> pages;    // [group]; kNoPage: not published, or evicted
};

/// Counted since create.
struct CacheCounters {
  uint64_t hit_pages = 0, published_pages = 0, evicted_pages = 0, expired_pages = 0,
           copied_slots = 0, swapped_out_pages = 0, swapped_in_pages = 0, fenced_pages = 0;
};

struct CacheSnapshot {
  std::vector<uint32_t> reference_counts;  // [page]
  std::vector<Page> free_pages, fenced_pages;
  std::vector<Page> cached_pages;  // the next to be evicted first
  std::vector<RequestSnapshot> requests;
  std::vector<PrefixSnapshot> prefixes;  // parents first
  std::vector<HostPage> host_free_pages;
  std::vector<StepNumber> steps_in_flight;
};

}  // namespace kvattn
