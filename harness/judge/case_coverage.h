// Purpose: what checking a case is worth, before it is run: which keys, V rows, pages and heads
// could not have been lost, doubled or exchanged unnoticed.
// Contract: a pure function of case, declaration and architecture; no kernel runs. A slot is
// certified when for some query row and head that sees it the fault must be rejected (coverage.h in
// reference). Slots that nobody sees are not counted. K and V are the data function's: cases that
// rotate or quantise them are `unsupported`. Rows are taken in order until `work` multiply-adds are
// spent; `rows_left_out` says how many were not reached.
// Example:
//   KV_ASSIGN_OR_RETURN(CaseCoverage covered, case_coverage(c, {}));
//   if (covered.complete()) ...
#pragma once

#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"
#include "harness/run/observation.h"

namespace kv {

struct FaultCount {
  uint64_t possible = 0, certified = 0;
  void add(bool is_certified) {
    ++possible;
    certified += is_certified;
  }
};

/// One K/V head of one request at one step, over all query rows that share it.
struct HeadCoverage {
  uint32_t op_index = 0, layer = 0, kv_head = 0;
  RequestId request = {};
  FaultCount dropped, doubled, swapped;     // of slots that some row sees
  FaultCount pages;                         // lost whole
  FaultCount heads;                         // 1: reading the next K/V head instead of this one
  std::vector<uint32_t> uncertified_slots;  // whose loss is not certified, ascending
  double sensitivity = 0;                   // every key heavier than this, in any row, is certified
};

struct CaseCoverage {
  std::vector<HeadCoverage> heads;
  uint64_t rows = 0, rows_left_out = 0;
  /// Whether the loss of every key that is seen is certified.
  bool complete() const;
};

struct CoverageOptions {
  DeclaredProfile declared = {};
  uint64_t work = uint64_t{1} << 30;
};
Result<CaseCoverage> case_coverage(const Case& c, const CoverageOptions& options);

/// One line for each head, for people.
std::string coverage_text(const CaseCoverage& coverage);

}  // namespace kv
