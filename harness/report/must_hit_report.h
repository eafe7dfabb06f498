// Purpose: what a run met, for people and programs: a table of the features and their judged cases,
// and what of the must-hit list is missing.
// Contract: pure functions; the list of the missing is cut for people, whole in the JSON.
// Example: puts((features_table(s.features) + must_hit_text(s)).c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/report/summary.h"

namespace kv {

/// Three columns of what was met; what was not is the business of must_hit_text().
std::string features_table(const FeatureSet& features);
std::string must_hit_text(const RunSummary& summary);
nlohmann::ordered_json must_hit_json(const RunSummary& summary);

}  // namespace kv
