// Purpose: the bugs of corpus/mutants, as their patches describe themselves.
// Contract: a patch begins with lines "Key: text", which may go on over several lines, up to the
// first empty line. Class, Change, Origin, Found by, Sources and Expect are required; Expect is
// "killed" or "equivalent, because ...". Names are file names without .patch, ascending. Patches
// without Sources (cache and engine: host plugins) are left out of read_planted.
// Example:  KV_ASSIGN_OR_RETURN(auto mutants, read_planted("corpus/mutants"));
#pragma once

#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct PlantedBug {
  std::string name, bug_class, change, origin, found_by, sources, expect;
  bool is_equivalent() const { return expect != "killed"; }
};

Result<std::vector<PlantedBug>> read_planted(const std::string& folder);

/// `text`: of the patch `name`.patch.
Result<PlantedBug> parse_planted(const std::string& name, const std::string& text);

}  // namespace kv
