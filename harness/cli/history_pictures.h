// Purpose: the pictures of a history's finding: whose every page was after every operation.
// Contract: pure; bounded as the other pictures (html_pictures.h), what is left out is said.
// Example:  for (Grid& grid : history_pictures(result)) shown.pictures.push_back(std::move(grid));
#pragma once

#include <vector>

#include "harness/history/judge.h"
#include "harness/report/html_svg.h"

namespace kv::cli {

/// `result`: with records.
std::vector<Grid> history_pictures(const HistoryResult& result);

}  // namespace kv::cli
