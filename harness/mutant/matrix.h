// Purpose: what each property is worth: the planted bugs that it kills, and those that only it
// kills.
// Contract: pure. A property is what property_of() makes of a killer: a stage ("contract",
// "provenance", "values"), and where a stage is of several checks the one of them ("device:race",
// "relation:alone", "engine:echo"). Each bug's campaign went on behind its first
// finding, so that its killers are all that found it; in one case the first stage that fails
// decides. A property that kills no bug alone needs a reason to be kept; `faults` are those that
// have none, and reasons for properties that do not exist.
// Example:  const KillMatrix matrix = kill_matrix(results, names, reasons);
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/mutant/report.h"

namespace kv {

struct KillRow {
  std::set<std::string> kills, only;  // names of planted bugs
  std::string because;                // why it is kept
};

struct KillMatrix {
  std::map<std::string, KillRow> rows;  // by property
  std::vector<std::string> faults;
};

/// "relation:alone" of "metamorphic/relation:alone (history)", "values" of "interval/lse-value",
/// The one spelling of a property.
std::string property_of(const std::string& killer);
/// The same of a killer of an engine's bug: "engine:reference-counts" of
/// "structure/reference-counts", "engine:echo" of every twin.
std::string engine_property_of(const std::string& killer);

/// `properties`: those that exist, whether they kill or not; `reasons`: by property.
KillMatrix kill_matrix(const std::vector<PlantedResult>& results,
                       const std::vector<std::string>& properties,
                       const std::map<std::string, std::string>& reasons);
Result<std::map<std::string, std::string>> read_reasons(const std::string& path);

std::string matrix_text(const KillMatrix& matrix);
nlohmann::ordered_json matrix_json(const KillMatrix& matrix);

}  // namespace kv
