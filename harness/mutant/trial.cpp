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

std::string killer_of(const nlohmann::json& failure) {
  std::string killer =
      failure.at("stage").get<std::string>() + "/" + failure.at("failure_class").get<std::string>();
  return failure.at("history").get<bool>() ? killer + " (history)" : killer;
}

void read_result(const nlohmann::json& json, Trial& trial) {
  trial.cases = json.contains("histories") ? json["histories"].get<uint64_t>()
                                           : json.at("summary").at("cases").get<uint64_t>();
  const auto& failures = json.at("failures");
  trial.end = failures.empty() ? TrialEnd::kSurvived : TrialEnd::kKilled;
  for (const auto& failure : failures) ++trial.killers[killer_of(failure)];
  if (failures.empty()) return;
  trial.killer = killer_of(failures.front());
  trial.message = failures.front().at("message").get<std::string>();
}

/// A campaign repeats each finding in fresh processes; for who objects it is enough to run once.
std::vector<std::string> attribution_arguments(const TrialOptions& o, const std::string& stem) {
  return {"mutants-attribute",
          "--plugin",
          o.plugin,
          "--corpus",
          o.corpus,
          "--seed",
          std::to_string(o.seed),
          "--cases",
          std::to_string(o.cases),
          "--json",
          stem + ".json"};
}

std::vector<std::string> arguments_of(const TrialOptions& o, const std::string& stem) {
  if (o.all && !o.is_engine) return attribution_arguments(o, stem);
  std::vector<std::string> arguments = {"check",
                                        "--plugin",
                                        o.plugin,
                                        "--minimize-attempts",
                                        "0",
                                        "--seed",
                                        std::to_string(o.seed),
                                        "--cases",
                                        std::to_string(o.cases),
                                        "--processor-seconds",
                                        fmt::format("{}", o.seconds),
                                        "--out",
                                        stem + ".found",
                                        "--json",
                                        stem + ".json"};
  if (o.is_engine) arguments.insert(arguments.end(), {"--level", "engine"});
  if (!o.is_engine) arguments.insert(arguments.end(), {"--corpus", o.corpus});
  if (!o.all) arguments.push_back("--first");
  if (o.all && o.is_engine) arguments.push_back("--keep-going");
  return arguments;
}

}  // namespace

Trial run_trial(const TrialOptions& o) {
  const std::string stem =
      fmt::format("{}/{}-{}", o.folder, std::filesystem::path(o.plugin).stem().string(), o.seed);
  const Ended ended = run_program({.executable = o.executable,
                                   .arguments = arguments_of(o, stem),
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
