// Purpose: a history's twin: what happened, once more on a fresh engine, under circumstances that
// must not matter. Equal tokens then give equal bits (echo.h), whoever else was there.
// Contract: a twin is a pure function of the case (exec.relation names it, exec.relation_seed
// chooses within it) and of what succeeded in the first run: prefix hits and room are the engine's
// business. Its requests are told their tokens, and a row brings its request to where it was after
// the same row in the first run. The twin is judged like any history; values are not judged twice.
// Bits are compared where the plugin promises KV_PROMISE_BATCH and KV_PROMISE_PAGE.
// Example:  Result<HistoryResult> r = run_with_twin(c, make_engine, {.conventions = declared});
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "harness/core/result.h"
#include "harness/gen/choice_source.h"
#include "harness/history/judge.h"

namespace kv {

struct TwinOp {
  Op op;
  Told told;              // of an admission and of a step
  uint32_t op_index = 0;  // of the history
};
struct Twin {
  Case c;  // its engine; its operations are those below
  std::vector<TwinOp> ops;
};

struct TwinRelation {
  std::string_view name;
  std::string_view purpose;  // what it says, in a few words
  std::string_view finds;    // the planted bug that only it kills
  /// False when it says nothing of this history.
  bool (*derive)(std::span<const Happened> happened, uint64_t seed, Twin& twin);
};

std::span<const TwinRelation> twin_relations();
/// nullptr: there is none of that name.
const TwinRelation* find_twin(std::string_view name);
/// Names one of them, or none.
void draw_twin(ChoiceSource& choices, Case& c);

/// A fresh engine for a case; the one before may be gone.
using MakeEngine = std::function<Result<Engine*>(const Case&)>;

/// The case, and its twin where it names one. A finding of the twin names it, and the operation of
/// the case that it belongs to.
Result<HistoryResult> run_with_twin(const Case& c, const MakeEngine& make, JudgeSettings settings);

}  // namespace kv
