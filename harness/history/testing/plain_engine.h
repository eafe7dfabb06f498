// Purpose: the plainest engine that keeps the contract, and one wrong in a chosen way.
// Contract: forks copy, the prefix cache publishes first pages only and is never hit, windows let
// nothing go, steps take effect at once but pages wait for them. Slots hold tokens; bytes are made
// when they are read (plain_store.h), turned and quantised where the case says so.
// Example:  PlainEngine engine(c, Fault::kLeakOnCancel);  run_history(c, engine, {});
#pragma once

#include <map>
#include <optional>

#include "harness/engine/engine.h"
#include "harness/history/model.h"
#include "harness/history/testing/plain_store.h"

namespace kv {

enum class Fault : uint8_t {
  kNone,
  kLeakOnCancel,        // a page is not given back
  kFreeTwice,           // a page is given back twice
  kCountTooHigh,        // fork counts a holder that is none
  kWriteSharedTail,     // fork shares its pages, and both go on writing the last one
  kTruncateNothing,     // truncate says yes and keeps the length
  kForgetOffset,        // position offset 0, whatever was asked
  kAcceptOldHandle,     // a released handle still works
  kAcceptPastLimit,     // a request grows beyond its limit
  kRefuseSilently,      // no sentence says why
  kHalfStep,            // a step without room for its last row keeps the others
  kNoFence,             // pages are free while a step that touches them is in flight
  kPublishOtherTokens,  // the key names other tokens than the page holds
  kPublishWithoutPage,  // ... or a page that is free
  kWriteOtherToken,     // a slot holds the token before it
  kValueIsKey,          // V is read from K's place
  kLayersSwapped,       // layer 0 and 1 change places in the last slot
  kReorderOnlyTables,   // beams change lengths and pages, but keep their first tokens' bytes
  kReorderNothing,      // beams stay what they were
  kInversePermutation,  // beams go where they should come from
  kShiftKeepsBytes,     // slots behind the gap keep what lay there before
  kSwapLosesPage,       // the last page does not come back
  kRestoreAnything,     // damaged bytes are taken
  kNoRoom,              // exhausted while pages are free
  kStuckBatchSlot,      // a cancelled request keeps its batch slot
  kLeakBatchSlot,       // ... and nobody knows
  kAdmitAnything,       // worst cases are not counted
  kPublishSpeculation,  // tokens that may be taken back are published
  // Of engines whose append turns or quantises:
  kOtherPairing,       // the other pairs are turned
  kTurnAfterResume,    // what is appended after a resume is turned one position too far
  kTurnAfterRollback,  // ... after a truncate
  kStaleScale,         // a page that is used again keeps the scale that it had
  kScaleOfFirstPage,   // a copied page takes the scale of the request's first one
  kMoveRoundsAgain,    // bytes that come back from the host are others, though admissible
  kShiftTurnsLess,     // a shift turns K one position too little
  kShiftAcrossScales,  // a shift moves slots to pages with other scales
};

/// What a shift does with the K that it moves: see kv_engine_level::shift_turns.
enum class ShiftedKey : uint8_t { kStays, kIsTurned };

class PlainEngine final : public Engine {
 public:
  PlainEngine(const Case& c, Fault fault, ShiftedKey shifted = ShiftedKey::kStays);

  Answer perform(const Call& call) override;
  Result<EngineState> snapshot(CacheKind cache) override;
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override;
  bool shift_turns() const override { return shifted_ == ShiftedKey::kIsTurned; }

 private:
  using Cells = std::vector<PlainCell>;  // [slot of a page]
  struct Side {                          // of one request in one cache
    std::vector<StoredToken> slots;
    std::vector<std::vector<uint32_t>> tables;  // [group]
  };
  struct Cache {
    uint32_t page_count = 0;
    size_t groups = 1;
    std::vector<uint32_t> references;
    std::vector<uint32_t> free, cached;
    std::vector<std::pair<uint32_t, uint64_t>> fenced;  // page, step that it waits for
    std::map<uint32_t, PrefixState> published;          // by page
    std::vector<Cells> cells;                           // [page]
  };
  struct Request {
    call::Admit admission;  // its tokens are not used
    uint64_t handle = 0;
    Life life = Life::kActive;
    int32_t batch_slot = -1;
    Side target, draft;
    std::vector<std::vector<uint32_t>> host;  // [group]
    uint64_t recompute = 0;
    uint64_t tree_begin = 0;  // slots from here on may be branches
    uint64_t settled = 0;     // slots before this one are not speculative
    bool turns_too_far = false;
  };
  static constexpr const char* kBranches = "a tree waits for one of its paths";
  static bool has_branches(const Request& r);

  Answer act(const call::Admit& admit);
  Answer act(const call::Step& step);
  Answer act(const call::Complete& complete);
  Answer act(const call::Fork& fork);
  Answer act(const call::Reorder& reorder);
  Answer act(const call::Truncate& truncate);
  Answer act(const call::Shift& shift);
  Answer act(const call::Cancel& cancel);
  Answer act(const call::Finish& finish);
  Answer act(const call::Preempt& preempt);
  Answer act(const call::Resume& resume);
  Answer act(const call::Evict& evict);
  Answer act(const call::Defrag& defrag);
  Answer act(const call::Save& save);
  Answer act(const call::Restore& restore);
  Answer act(const call::FailAllocation& fail);

  Answer refuse(const char* why) const;
  Answer no_room() const;
  Request* find(RequestId id);
  Request* active(RequestId id);
  int32_t free_batch_slot() const;
  uint64_t worst_pages(const Request& r) const;
  bool fits_budget(uint64_t more) const;
  Answer admitted(Request& r);
  const char* why_no_row(const call::StepRow& row, bool draft);
  uint64_t pages_missing(const Side& side, uint64_t length) const;
  bool can_take(const Cache& cache, uint64_t pages);
  /// Pages on hand once `held` have been given back.
  uint64_t pages_after(const Cache& cache, uint64_t held) const;
  uint32_t take(Cache& cache);
  void drop(Cache& cache, uint32_t page);
  void release(Cache& cache, Side& side, uint64_t length);
  void put(Cache& cache, Side& side, const std::vector<StoredToken>& slots);
  void unpublish(Cache& cache, const Side& side, uint64_t length);
  void publish();
  void end_steps(uint64_t number);
  PlainCell cell_of(const Cache& cache, uint32_t page, uint64_t slot, const StoredToken& token);
  void turn_back(std::vector<StoredToken>& slots, uint64_t begin, int64_t gap);
  Cells& last_page(Cache& cache, const Side& side, size_t group);
  const PlainCell& cell(const Cache& cache, const SlotPlace& place, uint32_t i, size_t group,
                        bool draft);

  const Case& case_;
  Fault fault_;
  ShiftedKey shifted_;
  Content content_;
  PlainStore store_;
  bool turns_too_far_ = false;  // what is put now
  Cache target_, draft_;
  std::map<RequestId, Request> requests_;
  std::vector<uint32_t> host_free_;
  std::map<uint64_t, Request> saved_;
  std::vector<uint64_t> flying_;         // steps
  std::vector<uint64_t> flying_drafts_;  // of them, the draft model's
  uint64_t launched_ = 0, handles_ = 0, failing_ = 0;
  uint32_t leaked_batch_slots_ = 0;
};

}  // namespace kv
