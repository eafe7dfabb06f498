#include "harness/mutant/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/relation/relation.h"

namespace kv {
namespace {

constexpr size_t kLeast = 3;
constexpr double kSecondsWorst = 60, kSecondsMedian = 2;
constexpr uint64_t kSeeds = 5;

constexpr const char* kClasses[] = {"A",   "B",    "C",   "D",    "E",    "F",    "G",    "H",
                                    "I",   "LIFE", "PAD", "KEY",  "FORK", "ACCT", "MOVE", "PUB",
                                    "ROW", "SPEC", "CAP", "EDGE", "SWA",  "TIER", "NAN"};
constexpr const char* kNamed[] = {"padding_dropped",   "pad_as_visible_zeros",  "triangle_flipped",
                                  "polarity_inverted", "hidden_tile_gives_nan", "finite_minimum"};

/// "C and G, split merge" is of two classes.
std::set<std::string> classes_of(const PlantedBug& bug) {
  std::string said = bug.bug_class.substr(0, bug.bug_class.find_first_of(",.:"));
  std::set<std::string> classes;
  for (size_t at = said.find(" and "); at != std::string::npos; at = said.find(" and ")) {
    classes.insert(said.substr(0, at));
    said = said.substr(at + 5);
  }
  classes.insert(said);
  return classes;
}

std::string fault_of_line(const nlohmann::json& line, const PlantedBug& bug) {
  const std::string state = line.at("state").get<std::string>();
  const double seconds = line.at("cpu_seconds_worst").get<double>();
  if (line.at("patch").get<std::string>() != bug.hash) return "the patch has changed since";
  if (state != (bug.is_equivalent() ? "equivalent" : "killed")) return state;
  const auto seeds = line.at("seeds").get<uint64_t>();
  if (seeds < (bug.is_equivalent() ? 1 : kSeeds))
    return fmt::format("expected {} seeds, got {}", kSeeds, seeds);
  if (state == "killed" && seconds > kSecondsWorst)
    return fmt::format("{} s of processor time to the kill", seconds);
  return "";
}

}  // namespace

std::vector<std::string> class_faults(const std::vector<PlantedBug>& bugs) {
  std::map<std::string, size_t> counts;
  for (const PlantedBug& bug : bugs)
    for (const std::string& name : classes_of(bug)) ++counts[name];
  std::vector<std::string> faults;
  for (const char* name : kClasses)
    if (counts[name] < kLeast)
      faults.push_back(fmt::format("class {}: expected at least {} planted bugs, got {}", name,
                                   kLeast, counts[name]));
  for (const std::string name : kNamed)
    if (std::none_of(bugs.begin(), bugs.end(), [&](const PlantedBug& bug) {
          return bug.name.find(name) != std::string::npos;
        }))
      faults.push_back("expected a planted bug named " + name + ", got none");
  return faults;
}

std::vector<std::string> table_faults(const nlohmann::json& table,
                                      const std::vector<PlantedBug>& bugs) {
  std::vector<std::string> faults;
  std::map<std::string, nlohmann::json> lines;
  std::vector<double> seconds;
  try {
    for (const auto& line : table) {
      lines[line.at("bug").get<std::string>()] = line;
      if (line.at("state") == "killed")
        seconds.push_back(line.at("cpu_seconds_worst").get<double>());
    }
    for (const PlantedBug& bug : bugs) {
      const auto line = lines.find(bug.name);
      const std::string fault =
          line == lines.end() ? "no line in the table" : fault_of_line(line->second, bug);
      if (!fault.empty()) faults.push_back(bug.name + ": " + fault);
      if (line != lines.end()) lines.erase(line);
    }
  } catch (const nlohmann::json::exception& e) {
    return {std::string("the table is malformed: ") + e.what()};
  }
  for (const auto& [name, line] : lines) faults.push_back(name + ": in the table, but no patch");
  std::sort(seconds.begin(), seconds.end());
  if (!seconds.empty() && seconds[seconds.size() / 2] > kSecondsMedian)
    faults.push_back(fmt::format("median of {} s to the kill", seconds[seconds.size() / 2]));
  return faults;
}

std::vector<std::string> matrix_faults(const nlohmann::json& matrix,
                                       const std::vector<PlantedBug>& bugs) {
  std::vector<std::string> faults;
  const auto exists = [&](const std::string& name) {
    return std::any_of(bugs.begin(), bugs.end(),
                       [&](const PlantedBug& bug) { return bug.name == name; });
  };
  try {
    std::map<std::string, uint32_t> killers;  // properties that kill a bug
    for (const auto& [property, row] : matrix.items()) {
      for (const std::string& name : row.at("kills").get<std::set<std::string>>()) ++killers[name];
    }
    for (const auto& [property, row] : matrix.items()) {
      const auto kills = row.at("kills").get<std::set<std::string>>();
      const auto only = row.at("only").get<std::set<std::string>>();
      std::set<std::string> alone;
      for (const std::string& name : kills)
        if (killers[name] == 1) alone.insert(name);
      if (only.empty() && row.value("because", "").empty())
        faults.push_back(property + ": kills no planted bug alone, and no reason is given");
      for (const std::string& name : kills)
        if (!exists(name)) faults.push_back(property + ": there is no planted bug " + name);
      if (only != alone)
        faults.push_back(property + ": what it kills alone is not what no other row kills");
    }
  } catch (const nlohmann::json::exception& e) {
    return {std::string("the matrix is malformed: ") + e.what()};
  }
  for (const Relation& relation : relations())
    if (const std::string name = "relation:" + std::string(relation.name); !matrix.contains(name))
      faults.push_back(name + ": no row in the matrix");
  return faults;
}

}  // namespace kv
