#include "harness/mutant/matrix.h"

#include <fmt/format.h>

#include <fstream>

namespace kv {
namespace {

std::set<std::string> properties_that_kill(const PlantedResult& result) {
  std::set<std::string> properties;
  for (const Trial& trial : result.trials)
    for (const auto& [killer, count] : trial.killers)
      properties.insert(result.bug.is_of_engine() ? engine_property_of(killer)
                                                  : property_of(killer));
  return properties;
}

}  // namespace

std::string property_of(const std::string& killer) {
  const std::string name = killer.substr(0, killer.find(" (history)"));
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return name;
  const std::string stage = name.substr(0, slash), what = name.substr(slash + 1);
  if (stage == "exact" || stage == "interval") return "values";
  if (stage == "metamorphic") return what;
  if (stage == "device") return what.starts_with("device:") ? what : "device:" + what;
  return stage;
}

std::string engine_property_of(const std::string& killer) {
  const std::string name = killer.substr(0, killer.find(" (history)"));
  const std::string check = name.substr(name.find('/') + 1);  // npos + 1: no stage
  return "engine:" + (check.starts_with("twin:") ? "echo" : check);
}

KillMatrix kill_matrix(const std::vector<PlantedResult>& results,
                       const std::vector<std::string>& properties,
                       const std::map<std::string, std::string>& reasons) {
  KillMatrix matrix;
  for (const std::string& property : properties) matrix.rows[property];
  for (const PlantedResult& result : results) {
    if (result.bug.is_equivalent()) continue;
    const std::set<std::string> killers = properties_that_kill(result);
    for (const std::string& property : killers) {
      matrix.rows[property].kills.insert(result.bug.name);
      if (killers.size() == 1) matrix.rows[property].only.insert(result.bug.name);
    }
  }
  for (const auto& [property, because] : reasons) {
    const auto row = matrix.rows.find(property);
    if (row == matrix.rows.end())
      matrix.faults.push_back(property + ": there is a reason to keep it, but no such property");
    else
      row->second.because = because;
  }
  for (const auto& [property, row] : matrix.rows)
    if (row.only.empty() && row.because.empty())
      matrix.faults.push_back(property + ": kills no planted bug alone, and no reason is given");
  return matrix;
}

Result<std::map<std::string, std::string>> read_reasons(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return bad_input(path + ": expected a JSON object of reasons");
  std::map<std::string, std::string> reasons;
  for (const auto& [property, because] : json.items()) {
    if (!because.is_string())
      return bad_input(path + ": " + property + ": expected a sentence, got " + because.dump());
    reasons[property] = because.get<std::string>();
  }
  return reasons;
}

std::string matrix_text(const KillMatrix& matrix) {
  std::string out = fmt::format("{:<28} {:>5} {:>5}  {}\n", "property", "kills", "alone",
                                "bugs that only it kills, or why it is kept");
  for (const auto& [property, row] : matrix.rows)
    out +=
        fmt::format("{:<28} {:>5} {:>5}  {}\n", property, row.kills.size(), row.only.size(),
                    row.only.empty() ? row.because : fmt::format("{}", fmt::join(row.only, " ")));
  for (const std::string& fault : matrix.faults) out += "FAULT " + fault + "\n";
  return out;
}

nlohmann::ordered_json matrix_json(const KillMatrix& matrix) {
  nlohmann::ordered_json json;
  for (const auto& [property, row] : matrix.rows) {
    json[property] = {{"kills", row.kills}, {"only", row.only}};
    if (!row.because.empty()) json[property]["because"] = row.because;
  }
  return json;
}

}  // namespace kv
