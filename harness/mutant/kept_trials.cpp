#include "harness/mutant/kept_trials.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TrialKey& key, const Trial& trial) {
  return {{"bug", key.bug},
          {"patch", key.patch},
          {"plugin", key.plugin},
          {"kverify", key.kverify},
          {"seed", key.seed},
          {"cases_max", key.cases},
          {"seconds_max", key.seconds},
          {"all", key.all},
          {"killed", trial.end == TrialEnd::kKilled},
          {"killer", trial.killer},
          {"message", trial.message},
          {"cases", trial.cases},
          {"killers", trial.killers},
          {"seconds", trial.seconds}};
}

std::pair<TrialKey, Trial> from_json(const nlohmann::json& json) {
  return {TrialKey{.bug = json.at("bug"),
                   .patch = json.at("patch"),
                   .plugin = json.at("plugin"),
                   .kverify = json.at("kverify"),
                   .seed = json.at("seed"),
                   .cases = json.at("cases_max"),
                   .seconds = json.value("seconds_max", 0.0),
                   .all = json.at("all")},
          Trial{.end = json.at("killed").get<bool>() ? TrialEnd::kKilled : TrialEnd::kSurvived,
                .killer = json.at("killer"),
                .message = json.at("message"),
                .cases = json.at("cases"),
                .seconds = json.at("seconds"),
                .killers = json.at("killers")}};
}

}  // namespace

Result<std::unique_ptr<KeptTrials>> KeptTrials::open(const std::string& path) {
  std::unique_ptr<KeptTrials> ledger(new KeptTrials(path));
  if (path.empty()) return ledger;
  if (std::filesystem::is_directory(path))
    return bad_input(path + ": expected a file of results, got a folder");
  std::ifstream file(path, std::ios::binary);
  uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;  // cut off where a process was lost
    try {
      ledger->known_.insert(from_json(json));
    } catch (const nlohmann::json::exception& e) {
      return bad_input(path + ":" + std::to_string(number) +
                       ": expected a result of mutants, got " + line.substr(0, 60));
    }
  }
  return ledger;
}

std::optional<Trial> KeptTrials::find(const TrialKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

Result<void> KeptTrials::add(const TrialKey& key, const Trial& trial) {
  if (trial.end == TrialEnd::kBroken || path_.empty()) return {};
  const std::lock_guard lock(mutex_);
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << to_json(key, trial).dump() << "\n" << std::flush;
  if (!file) return environment_error(path_ + ": cannot be written");
  known_[key] = trial;
  return {};
}

}  // namespace kv
