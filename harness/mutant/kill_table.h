// Purpose: the table of what killed each planted bug, kept beside the patches.
// Contract: one line for each bug: hash of its patch, state, killers, the worst cases and processor
// seconds over the seeds. update() replaces the lines of the bugs that ran, drops those of bugs
// that are gone, and leaves the others; a test asks whether each patch has a line of its own hash.
// Example:  update_kill_table("corpus/mutants/killed.json", bugs, results);
#pragma once

#include <string>
#include <vector>

#include "harness/mutant/report.h"

namespace kv {

/// `bugs`: all that there are; `results`: of those that ran.
Result<void> update_kill_table(const std::string& path, const std::vector<PlantedBug>& bugs,
                               const std::vector<PlantedResult>& results);

}  // namespace kv
