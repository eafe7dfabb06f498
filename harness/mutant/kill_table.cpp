#include "harness/mutant/kill_table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

Json line_of(const PlantedResult& r) {
  std::set<std::string> killers;
  uint64_t cases = 0;
  double seconds = 0;
  for (const Trial& t : r.trials) {
    if (t.end == TrialEnd::kKilled) killers.insert(t.killer);
    cases = std::max(cases, t.cases);
    seconds = std::max(seconds, t.seconds);
  }
  return {{"bug", r.bug.name},
          {"patch", r.bug.hash},
          {"state", r.state()},
          {"seeds", r.trials.size()},
          {"killers", killers},
          {"cases_worst", cases},
          {"cpu_seconds_worst", std::round(seconds * 10) / 10}};
}

Result<std::map<std::string, Json>> read_table(const std::string& path) {
  std::map<std::string, Json> lines;
  std::ifstream file(path, std::ios::binary);
  if (!file) return lines;  // the first time
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_array()) return bad_input(path + ": expected a JSON array of planted bugs");
  for (const Json& line : json) {
    if (!line.is_object() || !line.contains("bug") || !line["bug"].is_string())
      return bad_input(path + ": expected objects with a bug, got " + line.dump().substr(0, 60));
    lines[line["bug"].get<std::string>()] = line;
  }
  return lines;
}

}  // namespace

Result<void> update_kill_table(const std::string& path, const std::vector<PlantedBug>& bugs,
                               const std::vector<PlantedResult>& results) {
  KV_ASSIGN_OR_RETURN(auto lines, read_table(path));
  for (const PlantedResult& r : results) lines[r.bug.name] = line_of(r);
  std::string text;
  for (const PlantedBug& bug : bugs) {
    const auto line = lines.find(bug.name);
    if (line != lines.end()) text += (text.empty() ? "" : ",\n") + line->second.dump();
  }
  std::ofstream file(path, std::ios::binary);
  file << "[\n" << text << "\n]\n";
  file.close();
  if (!file) return environment_error(path + ": cannot be written");
  return {};
}

}  // namespace kv
