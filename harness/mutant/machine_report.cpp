#include "harness/mutant/machine_report.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

struct Score {
  uint64_t tried = 0, reached = 0, infected = 0, propagated = 0, killed = 0, equivalent = 0;
  double value() const {
    const uint64_t counted = infected - equivalent;
    return counted == 0 ? 1 : static_cast<double>(killed) / static_cast<double>(counted);
  }
};

void add(Score& score, const MachineResult& r, const Judgement* judgement) {
  ++score.tried;
  score.reached += r.reached;
  score.infected += r.infected;
  score.propagated += r.propagated;
  score.killed += !r.killer.empty();
  score.equivalent += judgement != nullptr;
}

using Scores = std::map<std::string, Score>;

template <class Key>
Scores scores_by(const MachineReport& report, Key key) {
  Scores scores;
  for (const MachineResult& r : report.results) add(scores[key(r)], r, report.judged(r));
  return scores;
}

/// "attend_decode_kernel<__half, 8, 4>" of the whole signature.
std::string short_kernel(const MachineResult& r) {
  const size_t from = r.kernel.find("attend_") == std::string::npos ? 0 : r.kernel.find("attend_");
  return r.kernel.substr(from, r.kernel.find('(', from) - from);
}

std::string row(const std::string& name, const Score& s) {
  return fmt::format("  {:<58} {:>6} {:>7} {:>8} {:>10} {:>6} {:>6.1f} %\n", name.substr(0, 58),
                     s.tried, s.reached, s.infected, s.propagated, s.killed, 100 * s.value());
}

std::string table(const char* title, const Scores& scores) {
  std::string out = fmt::format("  {:<58} {:>6} {:>7} {:>8} {:>10} {:>6} {:>8}\n", title, "tried",
                                "reached", "infected", "propagated", "killed", "score");
  for (const auto& [name, score] : scores) out += row(name, score);
  return out;
}

std::string facts_of(const MachineResult& r) {
  return fmt::format("{}, {}, {}{}", r.reached ? "reached" : "not reached",
                     r.infected ? "infected" : "not infected",
                     r.propagated ? "propagated" : "not propagated",
                     r.is_complete ? "" : ", cap reached");
}

/// What somebody else may have written: a field that is missing or of another type is bad input.
template <class T, class Read>
Result<T> read_fields(const std::string& where, Read read) {
  try {
    T value;
    read(value);
    return value;
  } catch (const nlohmann::json::exception& e) {
    return bad_input(where + ": " + e.what());
  }
}

bool matches(const std::string& pattern, const std::string& text) {
  return pattern.empty() || text.find(pattern) != std::string::npos;
}

}  // namespace

Result<std::vector<Judgement>> read_judgements(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_array()) return bad_input(path + ": expected a JSON array of judgements");
  return read_fields<std::vector<Judgement>>(path, [&](std::vector<Judgement>& judgements) {
    for (const auto& item : json)
      judgements.push_back({.source = item.value("source", ""),
                            .op = item.value("operator", ""),
                            .before = item.value("before", ""),
                            .after = item.value("after", ""),
                            .because = item.at("equivalent_because").get<std::string>()});
  });
}

const Judgement* MachineReport::judged(const MachineResult& r) const {
  if (!r.infected || !r.killer.empty()) return nullptr;
  for (const Judgement& j : judgements)
    if (matches(j.source, r.source) && matches(j.op, r.op) && matches(j.before, r.before) &&
        matches(j.after, r.after))
      return &j;
  return nullptr;
}

double MachineReport::score() const {
  Score all;
  for (const MachineResult& r : results) add(all, r, judged(r));
  return all.value();
}

Json to_json(const MachineResult& r) {
  return {{"index", r.index},           {"kernel", r.kernel},   {"source", r.source},
          {"operator", r.op},           {"variant", r.variant}, {"before", r.before},
          {"after", r.after},           {"reached", r.reached}, {"infected", r.infected},
          {"propagated", r.propagated}, {"killer", r.killer},   {"cases", r.cases},
          {"complete", r.is_complete}};
}

Result<MachineResult> result_from_json(const nlohmann::json& json, const std::string& where) {
  return read_fields<MachineResult>(where, [&](MachineResult& r) {
    json.at("index").get_to(r.index);
    json.at("kernel").get_to(r.kernel);
    json.at("source").get_to(r.source);
    json.at("operator").get_to(r.op);
    json.at("variant").get_to(r.variant);
    json.at("before").get_to(r.before);
    json.at("after").get_to(r.after);
    json.at("reached").get_to(r.reached);
    json.at("infected").get_to(r.infected);
    json.at("propagated").get_to(r.propagated);
    json.at("killer").get_to(r.killer);
    json.at("cases").get_to(r.cases);
    json.at("complete").get_to(r.is_complete);
  });
}

Json to_json(const ShardFacts& f) {
  return {{"mutations", f.mutations}, {"executed", f.executed}, {"chosen", f.chosen}};
}

Result<ShardFacts> facts_from_json(const nlohmann::json& json) {
  return read_fields<ShardFacts>("a shard's facts", [&](ShardFacts& f) {
    json.at("mutations").get_to(f.mutations);
    json.at("executed").get_to(f.executed);
    json.at("chosen").get_to(f.chosen);
  });
}

std::string machine_text(const MachineReport& report) {
  std::string out = fmt::format(
      "{} mutations of these kernels, {} of instructions that the suite executes, {} tried\n",
      report.facts.mutations, report.facts.executed, report.results.size());
  out += table("kernel", scores_by(report, short_kernel));
  out += table("operator", scores_by(report, [](const MachineResult& r) { return r.op; }));
  out += table("killer", scores_by(report, [](const MachineResult& r) {
                 return r.killer.empty() ? std::string("(survived)") : r.killer;
               }));
  out += table("all", scores_by(report, [](const MachineResult&) { return std::string(); }));
  out += "survivors that changed a value\n";
  for (const MachineResult& r : report.results) {
    if (!r.infected || !r.killer.empty()) continue;
    const Judgement* judgement = report.judged(r);
    out += fmt::format("  {} {} [{}] {}\n    {}\n    {}\n    {}{}\n", short_kernel(r), r.source,
                       r.op, r.variant, r.before, r.after, facts_of(r),
                       judgement ? "; equivalent, because " + judgement->because : "");
  }
  return out;
}

Json machine_json(const MachineReport& report) {
  Json json = {{"mutations", report.facts.mutations},
               {"executed", report.facts.executed},
               {"tried", report.results.size()},
               {"score", report.score()}};
  json["by_source"] = Json::object();
  for (const auto& [source, s] : scores_by(report, [](const MachineResult& r) { return r.source; }))
    json["by_source"][source] = {
        {"tried", s.tried}, {"infected", s.infected}, {"killed", s.killed}};
  json["survivors"] = Json::array();
  for (const MachineResult& r : report.results) {
    if (!r.killer.empty()) continue;
    Json item = to_json(r);
    const Judgement* judgement = report.judged(r);
    if (judgement != nullptr) item["equivalent_because"] = judgement->because;
    json["survivors"].push_back(std::move(item));
  }
  return json;
}

}  // namespace kv
