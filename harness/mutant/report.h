// Purpose: what the trials of many mutants say together, for a person and as JSON.
// Contract: a mutant counts as killed only when every one of its seeds killed it, and by a check
// that its patch names. Equivalent ones are wrong when they are killed. The JSON holds no times.
// Example:  puts(planted_text(results).c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/mutant/planted.h"
#include "harness/mutant/trial.h"

namespace kv {

struct PlantedResult {
  PlantedBug bug;
  std::vector<Trial> trials;  // one for each seed

  size_t killed() const;
  bool is_broken() const;
  /// Killed by every seed, or equivalent and by none.
  bool is_as_expected() const;
  /// "killed", "equivalent", or what is wrong.
  std::string state() const;
};

std::string planted_text(const std::vector<PlantedResult>& results);
nlohmann::ordered_json planted_json(const std::vector<PlantedResult>& results);
bool all_as_expected(const std::vector<PlantedResult>& results);

}  // namespace kv
