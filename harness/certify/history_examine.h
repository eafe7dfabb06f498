// Purpose: histories as cases like any other: a verdict, and what a person and a program are told.
// Contract: one run in the bench's worker; nothing is repeated (Examiner does). The stage and the
// failure class of the verdict are the class of check that found it, which a case and its shrunken
// form share. With `record`, the finding is told in full: its story, its place, its trace.
// Example:  KV_ASSIGN_OR_RETURN(Examined e, examine_history(bench, c, {.value_steps = 0.25}));
#pragma once

#include "harness/certify/examine.h"
#include "harness/certify/history_bench.h"

namespace kv {

struct HistoryExam {
  double value_steps = 1;  // fraction of the steps with queries whose outputs are judged
  bool record = false;
};
Result<Examined> examine_history(HistoryBench& bench, const Case& c, const HistoryExam& exam);

/// "provenance", "twin:alone": what the finding is called.
std::string history_failure_class(const HistoryFinding& finding);

}  // namespace kv
