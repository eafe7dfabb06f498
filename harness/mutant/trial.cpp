#include "harness/mutant/trial.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/mutant/program.h"

namespace kv {
namespace {

std::string tail_of(const std::string& log) {
  std::ifstream file(log, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  constexpr size_t kKept = 400;
  return text.size() > kKept ? text.substr(text.size() - kKept) : text;
}

void read_result(const nlohmann::json& json, Trial& trial) {
  trial.cases = json.at("summary").at("cases").get<uint64_t>();
  const auto& failures = json.at("failures");
  if (failures.empty()) {
    trial.end = TrialEnd::kSurvived;
    return;
  }
  const auto& first = failures.front();
  trial.end = TrialEnd::kKilled;
  trial.killer =
      first.at("stage").get<std::string>() + "/" + first.at("failure_class").get<std::string>();
  if (first.at("history").get<bool>()) trial.killer += " (history)";
  trial.message = first.at("message").get<std::string>();
}

}  // namespace

Trial run_trial(const TrialOptions& o) {
  const std::string stem =
      fmt::format("{}/{}-{}", o.folder, std::filesystem::path(o.plugin).stem().string(), o.seed);
  const std::vector<std::string> arguments = {"check",
                                              "--first",
                                              "--plugin",
                                              o.plugin,
                                              "--minimize-attempts",
                                              "0",
                                              "--seed",
                                              std::to_string(o.seed),
                                              "--cases",
                                              std::to_string(o.cases),
                                              "--minutes",
                                              fmt::format("{}", o.seconds / 60),
                                              "--corpus",
                                              o.corpus,
                                              "--out",
                                              stem + ".found",
                                              "--json",
                                              stem + ".json"};
  const Ended ended = run_program({.executable = o.executable,
                                   .arguments = arguments,
                                   .environment = o.environment,
                                   .log = stem + ".log"});
  Trial trial{.seconds = ended.seconds};
  std::ifstream file(stem + ".json", std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  const bool told = ended.status <= 6 && ended.status != 2 && ended.status != 3;
  try {
    if (told && !json.is_discarded()) read_result(json, trial);
  } catch (const nlohmann::json::exception&) {
    trial.end = TrialEnd::kBroken;
  }
  if (trial.end == TrialEnd::kBroken)
    trial.killer = fmt::format("exit code {}: {}", ended.status, tail_of(stem + ".log"));
  return trial;
}

}  // namespace kv
