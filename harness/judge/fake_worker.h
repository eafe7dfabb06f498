// Purpose: observations for the judge's tests: a conforming plugin and worker in a few lines of
// plain double arithmetic, with one place for each fault that a test plants.
// Contract: with the hooks left alone the observation is that of a correct plugin.
#pragma once

#include <functional>

#include "harness/case/case.h"
#include "harness/case/timeline.h"
#include "harness/run/observation.h"

namespace kv {

struct FakeFaults {
  /// Changes what a query row sees: (step row, query, visible).
  std::function<void(const PlannedRow&, uint32_t, std::vector<uint8_t>&)> visible;
  /// K/V head that a query head reads.
  std::function<uint32_t(uint32_t)> kv_head;
  /// Slot that the token of slot `s` is written to, in the request's own pages; -1: nowhere.
  std::function<int64_t(const PlannedRow&, int64_t)> written_slot;
  /// Position that the key of a slot is turned to, where keys are turned.
  std::function<int64_t(const Sequence&, int64_t)> key_position;
  /// Page that attention reads for page index `p` of a row.
  std::function<PageId(const Sequence&, size_t)> read_page;
  /// Anything else, at the end.
  std::function<void(Observation&)> finish;
};

/// Runs all operations of the case. Declares fp32 arithmetic, tiles of 16 and natural logarithms.
Observation fake_observation(const Case& c, const FakeFaults& faults = {});

/// One layer, two requests, GQA, a prefill and some decode steps over scattered pages.
Case small_case();

}  // namespace kv
