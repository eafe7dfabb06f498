// Purpose: questions to a campaign's ledger, in SQL.
// Contract: a database in memory, filled from the lines and read only: no statement but one SELECT
// runs, and none reaches a file. What takes more than kQueryStepsMax steps of SQLite's machine, or
// gives more than kQueryRowsMax rows, is bad input. Tables and views:
//   runs      every run of a case, in order: line, number, outcome, variant, fingerprint, history,
//             file, new_feature_pairs; NULL where a line says nothing of it
//   cases     the last run of each number
//   findings  those of cases that have a fingerprint
//   faults    for each fingerprint: count, first (number), file (of the first)
//   deaths    workers that died: line, worker, number, status, set_aside
// Example: KV_ASSIGN_OR_RETURN(const QueryRows rows, query_ledger(ledger, "SELECT * FROM faults"));
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/campaign/ledger.h"
#include "harness/core/result.h"

namespace kv {

inline constexpr uint64_t kQueryStepsMax = 100'000'000;  // some seconds
inline constexpr size_t kQueryRowsMax = 100'000;

struct QueryRows {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::ordered_json>> rows;  // null, integer, real or string
};
Result<QueryRows> query_ledger(const LedgerLines& ledger, const std::string& sql);

/// Columns side by side, for a person.
std::string query_text(const QueryRows& rows);

}  // namespace kv
