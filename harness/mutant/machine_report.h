// Purpose: the mutation score, by kernel, operator and source line; survivors with their facts.
// Contract: results as the shards wrote them, one JSON object on a line. A judgement names mutants
// by source line, operator, and the instruction before and after, and says why they are equivalent;
// these do not count. The score is killed / infected. Infected is: any value or branch differed.
// Example:  puts(machine_text({.facts = facts, .results = results, .judgements = {}}).c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/mutant/machine.h"

namespace kv {

struct Judgement {
  std::string source, op, before, after;  // "" matches everything
  std::string because;
};
Result<std::vector<Judgement>> read_judgements(const std::string& path);

struct MachineReport {
  ShardFacts facts;
  std::vector<MachineResult> results;
  std::vector<Judgement> judgements;

  /// Of an infected survivor that is judged equivalent; nullptr otherwise.
  const Judgement* judged(const MachineResult& result) const;
  double score() const;  // 1 when nothing was infected
};

nlohmann::ordered_json to_json(const MachineResult& result);
/// `where`: what it stands in, for the error.
Result<MachineResult> result_from_json(const nlohmann::json& json,
                                       const std::string& where = "a shard's result");
nlohmann::ordered_json to_json(const ShardFacts& facts);
Result<ShardFacts> facts_from_json(const nlohmann::json& json);

std::string machine_text(const MachineReport& report);
nlohmann::ordered_json machine_json(const MachineReport& report);

}  // namespace kv
