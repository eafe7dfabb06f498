#include "harness/mutant/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace kv {
namespace {

/// "structure/reference-counts" is the engine's "reference counts".
std::string check_of_engine(std::string check) {
  if (check.starts_with("twin:")) return "echo";
  std::replace(check.begin(), check.end(), '-', ' ');
  return check;
}

/// What patches of kernels call it: a stage, or a relation by its name.
std::string check_of_kernel(const std::string& stage, const std::string& failure_class) {
  constexpr std::string_view kRelation = "relation:";
  if (failure_class.starts_with(kRelation)) return failure_class.substr(kRelation.size());
  if (failure_class.starts_with("merge")) return "merge";
  return stage == "exact" || stage == "interval" ? "value" : stage;
}

/// Was it found by what its patch says?
bool is_named(const PlantedBug& bug, const Trial& trial) {
  if (trial.end != TrialEnd::kKilled) return true;
  const size_t slash = std::min(trial.killer.find('/'), trial.killer.size());
  std::string check = trial.killer.substr(std::min(slash + 1, trial.killer.size()));
  check.resize(std::min(check.size(), check.find(" (history)")));
  return bug.names(bug.is_of_engine() ? check_of_engine(check)
                                      : check_of_kernel(trial.killer.substr(0, slash), check));
}

std::string killers_of(const PlantedResult& r) {
  std::set<std::string> killers;
  for (const Trial& t : r.trials)
    if (t.end != TrialEnd::kSurvived) killers.insert(t.killer);
  return fmt::format("{}", fmt::join(killers, ", "));
}

uint64_t cases_worst(const PlantedResult& r) {
  uint64_t worst = 0;
  for (const Trial& t : r.trials) worst = std::max(worst, t.cases);
  return worst;
}

std::vector<double> kill_seconds(const std::vector<PlantedResult>& results) {
  std::vector<double> seconds;
  for (const PlantedResult& r : results)
    for (const Trial& t : r.trials)
      if (t.end == TrialEnd::kKilled) seconds.push_back(t.seconds);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

std::string row_text(const PlantedResult& r) {
  double seconds = 0;
  for (const Trial& t : r.trials) seconds = std::max(seconds, t.seconds);
  return fmt::format("{:<38} {:<12} {:>6} cases {:>6.1f} s  {}\n", r.bug.name, r.state(),
                     cases_worst(r), seconds, r.bug.is_equivalent() ? r.bug.expect : killers_of(r));
}

}  // namespace

size_t PlantedResult::killed() const {
  return static_cast<size_t>(std::count_if(
      trials.begin(), trials.end(), [](const Trial& t) { return t.end == TrialEnd::kKilled; }));
}

bool PlantedResult::is_broken() const {
  return trials.empty() || std::any_of(trials.begin(), trials.end(),
                                       [](const Trial& t) { return t.end == TrialEnd::kBroken; });
}

bool PlantedResult::is_as_expected() const {
  return !is_broken() && killed() == (bug.is_equivalent() ? 0 : trials.size()) &&
         std::all_of(trials.begin(), trials.end(),
                     [this](const Trial& t) { return is_named(bug, t); });
}

std::string PlantedResult::state() const {
  if (is_broken()) return "broken";
  if (bug.is_equivalent()) return killed() == 0 ? "equivalent" : "KILLED, NOT EQUIVALENT";
  if (killed() < trials.size())
    return fmt::format("SURVIVED {} of {} seeds", trials.size() - killed(), trials.size());
  return is_as_expected() ? "killed" : "FOUND BY ANOTHER CHECK";
}

bool all_as_expected(const std::vector<PlantedResult>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const PlantedResult& r) { return r.is_as_expected(); });
}

std::string planted_text(const std::vector<PlantedResult>& results) {
  std::string out;
  size_t planted = 0, killed = 0, equivalent = 0;
  std::map<std::string, size_t> killers;
  for (const PlantedResult& r : results) {
    out += row_text(r);
    equivalent += r.bug.is_equivalent();
    planted += !r.bug.is_equivalent();
    killed += !r.bug.is_equivalent() && r.is_as_expected();
    for (const Trial& t : r.trials)
      if (t.end == TrialEnd::kKilled) ++killers[t.killer];
  }
  out += fmt::format("{} of {} planted bugs killed by every seed, {} equivalent\n", killed, planted,
                     equivalent);
  for (const auto& [killer, count] : killers) out += fmt::format("  {:>5}  {}\n", count, killer);
  const std::vector<double> seconds = kill_seconds(results);
  if (!seconds.empty())
    out += fmt::format(
        "machine (never compared)\n  processor time of a kill: median {:.1f} s, "
        "worst {:.1f} s\n",
        seconds[seconds.size() / 2], seconds.back());
  return out;
}

nlohmann::ordered_json planted_json(const std::vector<PlantedResult>& results) {
  auto json = nlohmann::ordered_json::array();
  for (const PlantedResult& r : results) {
    nlohmann::ordered_json row = {{"name", r.bug.name},
                                  {"class", r.bug.bug_class},
                                  {"expect", r.bug.expect},
                                  {"state", r.state()}};
    row["trials"] = nlohmann::ordered_json::array();
    for (const Trial& t : r.trials)
      row["trials"].push_back(
          {{"killed", t.end == TrialEnd::kKilled}, {"killer", t.killer}, {"cases", t.cases}});
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace kv
