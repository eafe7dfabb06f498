// Purpose: a finding of a history, told in full: where it is, what the engine believed there, and
// what last happened to the page concerned ("who wrote this slot last").
// Contract: pure functions of case, finding and records; nothing of time or machine. The trace is
// Chrome's trace event format, which Perfetto opens: a track for each request, one operation a
// millisecond, and counters of free, cached, fenced and owned pages.
// Example:  puts(explain_history(c, finding, place_of(c, finding, records)).c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/case/limits.h"
#include "harness/history/judge.h"

namespace kv {

struct PageEvent {
  uint32_t op_index = 0;
  std::string what;
};

/// All that is said of the place of a finding; -1 and "" where it has none.
struct FindingPlace {
  int64_t request = -1, slot = -1, layer = -1, page = -1, batch_slot = -1, references = -1;
  uint64_t length = 0;
  int64_t position_offset = 0;
  std::vector<int32_t> block_table;  // of the layer's group
  uint64_t bytes_allocated = 0, bytes_live = 0;
  std::string permutation;         // of the last reorder before
  std::vector<PageEvent> on_page;  // the last ones, newest first
};

FindingPlace place_of(const Case& c, const HistoryFinding& finding,
                      std::span<const OpRecord> records);

std::string explain_history(const Case& c, const HistoryFinding& finding,
                            const FindingPlace& place);
nlohmann::ordered_json finding_json(const Case& c, const HistoryFinding& finding,
                                    const FindingPlace& place);
nlohmann::ordered_json chrome_trace(const Case& c, std::span<const OpRecord> records);

}  // namespace kv
