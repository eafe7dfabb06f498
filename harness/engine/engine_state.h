// Purpose: what an engine says of itself (kv_snapshot), as plain values.
// Contract: copy_snapshot trusts nothing: a missing array, a count beyond every bound or an entry
// without its length is an error that names it. What comes from a worker has passed through memory
// of the code under test: check_shape() is asked again where it arrives. Whether the numbers make
// sense is for the checks.
// Example:  KV_ASSIGN_OR_RETURN(EngineState state, copy_snapshot(snapshot));
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/id.h"
#include "harness/core/result.h"
#include "harness/engine/last_round.h"
#include "harness/engine/page_tokens.h"
#include "harness/plugin/kverify_engine.h"

namespace kv {

enum class Life : uint8_t { kActive, kPreempted, kSwapped };  // KV_REQUEST_*

inline constexpr int32_t kNoPage = -1;  // in a block table: expired

struct RequestState {
  RequestId request = {};
  Life life = Life::kActive;
  int32_t batch_slot = -1;
  uint64_t owner = 0, handle = 0, side_input = 0, length = 0;
  int64_t position_offset = 0;
  std::vector<std::vector<int32_t>> tables;  // [group][page]; host pages of a swapped request
  bool operator==(const RequestState&) const = default;
};

/// A prefix that admit can find: its parent's, and then its own tokens.
struct PrefixState {
  int32_t parent = -1;
  uint64_t side_input = 0;
  int64_t position_offset = 0;
  PageTokens tokens;  // [page_slots]
  GroupPages pages;   // [group]
  bool operator==(const PrefixState&) const = default;
};

struct SlotsCopied {
  uint32_t group = 0, from_page = 0, from_slot = 0, to_page = 0, to_slot = 0, slots = 0;
};

struct EngineCounters {
  uint64_t hit_pages = 0, published_pages = 0, evicted_pages = 0, expired_pages = 0;
  uint64_t copied_slots = 0, swapped_out_pages = 0, swapped_in_pages = 0, fenced_pages = 0;
  bool operator==(const EngineCounters&) const = default;
};

struct EngineState {
  uint32_t page_count = 0, group_count = 0, page_slots = 0, host_page_count = 0;
  std::vector<uint32_t> references;  // [page]
  std::vector<uint32_t> free, fenced, cached, host_free;
  std::vector<RequestState> requests;
  std::vector<PrefixState> prefixes;
  std::vector<uint64_t> in_flight;
  std::vector<SlotsCopied> copies;  // of the last operation
  EngineCounters counters;

  const RequestState* find(RequestId request) const;
};

/// The tokens of prefixes that an engine has told apart by identities, one snapshot after another
/// of one cache. A known prefix is looked at again where that costs little, and else at intervals:
/// one that has changed is an error.
class KnownPrefixes {
 public:
  /// `numbers`: how many pages of tokens have been numbered, in all caches of one engine.
  explicit KnownPrefixes(uint64_t& numbers) : numbers_(numbers) {}

  void begin_snapshot(uint64_t prefix_count);
  Result<PageTokens> tokens_of(const kv_snapshot_prefix& prefix, uint32_t page_slots);

 private:
  LastRound<PageTokens> known_;  // by identity
  uint64_t& numbers_;
  uint64_t snapshots_ = 0, prefix_count_ = 0;
};

Result<EngineState> copy_snapshot(const kv_snapshot& snapshot, KnownPrefixes& known);
/// That every array has the length that the checks index it by, and every prefix a parent before
/// it: bad input that names the first that has not.
Result<void> check_shape(const EngineState& state);

}  // namespace kv
