// Purpose: a finding of a history, told in full: where it is, what the engine believed there, and
// what last happened to the page concerned ("who wrote this slot last").
// Contract: pure functions of case, finding and records; nothing of time or machine. The trace is
// Chrome's trace event format, which Perfetto opens: a track for each request, one operation a
// millisecond, and counters of free, cached, fenced and owned pages.
// Example:  puts(explain_history(c, finding, records).c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "harness/case/limits.h"
#include "harness/history/judge.h"

namespace kv {

std::string explain_history(const Case& c, const HistoryFinding& finding,
                            std::span<const OpRecord> records);
nlohmann::ordered_json finding_json(const Case& c, const HistoryFinding& finding,
                                    std::span<const OpRecord> records);
nlohmann::ordered_json chrome_trace(const Case& c, std::span<const OpRecord> records);

}  // namespace kv
