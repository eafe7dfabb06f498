// Purpose: is the corpus of planted bugs whole?
// Contract: pure; each fault is one sentence. class_faults: each class of kernel bugs (A to I) and
// of cache bugs (LIFE to NAN) has at least three, and the bugs that users ask about first are among
// them. table_faults: the committed table has a line for each patch, of the patch as it is now,
// that says killed by each of five seeds (within a minute of processor time) or equivalent; the
// median is under 2 s. matrix_faults: the committed matrix has a row for every relation, names only
// bugs that there are, says of each row which of its bugs no other kills, and why it is kept where
// there is none.
// Example:  for (const std::string& fault : class_faults(bugs)) puts(fault.c_str());
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/mutant/planted.h"

namespace kv {

std::vector<std::string> class_faults(const std::vector<PlantedBug>& bugs);
std::vector<std::string> table_faults(const nlohmann::json& table,
                                      const std::vector<PlantedBug>& bugs);
std::vector<std::string> matrix_faults(const nlohmann::json& matrix,
                                       const std::vector<PlantedBug>& bugs);

}  // namespace kv
