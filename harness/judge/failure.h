// Purpose: what a stage of the judge hands to the next: nothing, or why the case fails.
// Contract: stages are pure functions of StepView; they neither keep state nor publish.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/case/case.h"
#include "harness/case/timeline.h"
#include "harness/judge/conversion.h"
#include "harness/judge/pool_image.h"
#include "harness/judge/verdict.h"
#include "harness/run/observation.h"

namespace kv {

struct Failure {
  Stage stage = Stage::kContract;
  std::string failure_class;
  std::string message;
  std::optional<Divergence> divergence = {};
  /// A NaN may be what attention rightly makes of a slot that holds the wrong bytes: if provenance
  /// finds such a slot, it decides instead.
  bool symptom = false;
};

/// One executed step, with everything that a stage may look at.
struct StepView {
  const Case& c;
  const PluginFacts& facts;
  const Timeline& timeline;  // after the step
  const PlannedStep& step;
  const OpObservation& seen;
  const PoolImage& pool;  // before the step for provenance, after it for values
  const Conversion& conversion;
};

/// A query row of the step, and where its results lie.
struct RowPlace {
  const PlannedRow* row = nullptr;
  uint32_t query = 0;  // 0-based among row->queries
  uint64_t token = 0;  // index among the step's query rows
  int64_t slot() const { return query_slot(*row, query); }
};

bool is_pad_row(const Timeline& timeline, const RowPlace& place);

/// Calls visit(RowPlace) for each query row in the order of the results; stops at the first true.
template <class Visit>
bool for_each_query(const PlannedStep& step, Visit visit) {
  uint64_t token = 0;
  for (const PlannedRow& row : step.rows) {
    for (uint32_t q = 0; q < row.queries; ++q, ++token) {
      if (visit(RowPlace{&row, q, token})) return true;
    }
  }
  return false;
}

/// The fields of a divergence that only depend on where it is.
Divergence divergence_at(const StepView& view, const PlannedRow& row, uint32_t layer);

/// "0x3c00": the code of `value` in `type`.
std::string hex_bits(DType type, uint32_t bits);

}  // namespace kv
