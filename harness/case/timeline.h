// Purpose: what the operations of a case mean: who exists, which slots each request holds, which
// page each slot lies in, which rows a step computes. A pure function of the case, walked by the
// worker (to build the kernels' inputs) and by the parent (to judge), operation by operation.
// Contract: Timeline::create validates the whole case's semantics within limits; apply() never
// fails afterwards for operations that create() accepted. Kernel level: kverify owns the pages, so
// the placement decided here *is* the input, not a guess about somebody's allocator. A Timeline
// refers to the case that it was created from, which must outlive it.
// Example:
//   KV_ASSIGN_OR_RETURN(Timeline t, Timeline::create(c));
//   for (uint32_t i = 0; i < c.ops.size(); ++i) {
//     for (const PlannedRow& row : t.apply(i).rows) use(t.sequence(row.request), row);
//   }
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/history.h"
#include "harness/case/page_pool.h"
#include "harness/core/result.h"

namespace kv {

/// One slot of a request's cache.
struct Slot {
  bool pad = false;
  uint64_t history = 0;   // identity of the token path up to and including this token; for PAD an
                          // identity of the slot itself
  int64_t position = 0;   // position id; for PAD the id of the next real token
  uint64_t previous = 0;  // history of the token before it; 0 for a request's first token and PAD
  bool operator==(const Slot&) const = default;
};

/// A live request as the cache should hold it.
struct Sequence {
  RequestId request = {};
  int64_t position_offset = 0;
  uint64_t real_tokens = 0;   // tokens appended so far
  std::vector<Slot> slots;    // in order
  std::vector<PageId> pages;  // block table: page of slots [p*page_slots, ...)
  uint64_t path = 0;          // history of the last real token, or the root of the empty path
};

/// One row of a step, after its append.
struct PlannedRow {
  RequestId request = {};
  uint32_t batch_slot = 0;    // index of the row in the batch
  uint32_t append_slots = 0;  // PAD and real slots appended by this step, the last of the sequence
  uint32_t queries = 0;       // query rows; row i stands at slot kv_length - queries + i
  uint32_t kv_length = 0;     // slots after the append
  uint32_t key_begin = 0, key_end = 0;  // hull of the real slots; 0, 0 when there are none
  bool holes = false;                   // PAD slots inside the hull
  std::vector<int32_t> tree_parents;
};

struct PlannedStep {
  uint32_t op_index = 0;
  std::vector<PlannedRow> rows;
};

class Timeline {
 public:
  /// Checks that every operation is lawful where it stands (handles exist, pages suffice, limits)
  /// and supported by the kernel level; unsupported operations are an `unsupported` error.
  static Result<Timeline> create(const Case& c);

  /// Applies operation `index` (must be called in order, 0, 1, 2, ...). Returns the planned step
  /// for a Step, an empty plan otherwise.
  PlannedStep apply(uint32_t index);

  /// Live requests in ascending order of id.
  const std::map<RequestId, Sequence>& sequences() const { return sequences_; }
  const Sequence& sequence(RequestId request) const;
  /// Pages that no live sequence holds; the last is taken next.
  std::span<const PageId> free_pages() const { return pool_.free(); }

 private:
  explicit Timeline(const Case& c);
  void apply_op(const op::Admit& admit);
  void apply_op(const op::Finish& finish) { release(finish.request); }
  void apply_op(const op::Cancel& cancel) { release(cancel.request); }
  PlannedStep apply_step(const op::Step& step);
  void append(Sequence& sequence, const op::StepRow& row);
  void release(RequestId request);

  const Case* case_ = nullptr;
  uint32_t next_op_ = 0;
  std::map<RequestId, Sequence> sequences_;
  Streams streams_;  // of every request ever admitted
  PagePool pool_;
};

/// The slot that query row `query` of `row` stands at; negative when there are more query rows than
/// slots.
inline int64_t query_slot(const PlannedRow& row, uint32_t query) {
  return int64_t{row.kv_length} - row.queries + query;
}
/// What stands there: slots[slot], or for slot < 0 a live row without a token, of an identity of
/// its own.
Slot slot_or_tokenless(const Case& c, const Sequence& sequence, int64_t slot);

/// One head of a query row. Heads differ where the mask tensor has a plane for each.
struct QueryHead {
  uint32_t query = 0;  // 0-based among the row's queries
  uint32_t head = 0;   // query head
};
/// Visible keys of a query row as 0/1 for each of row.kv_length slots, from the definition of the
/// mask over slots: real, causal, window, tree, tensor. This is for showing and for generators; the
/// reference has its own from its own definition.
std::vector<uint8_t> visible_slots(const Case& c, const Sequence& sequence, const PlannedRow& row,
                                   QueryHead of);

}  // namespace kv
