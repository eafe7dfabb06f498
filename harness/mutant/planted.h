// Purpose: the bugs of corpus/mutants, as their patches describe themselves.
// Contract: a patch begins with lines "Key: text", which may go on over several lines, up to the
// first empty line. Class, Change, Origin, Found by, Sources and Expect are required; Expect is
// "killed" or "equivalent, because ...". Level is "kernel" when it is left out, "engine" for host
// plugins (cache and engine without a device) or "engine with attention". Found by names the checks
// that may find it: of an engine up to the first colon (provenance, echo ...), of kernels in its
// first sentence, a stage (device, contract, provenance, value, merge) or a relation. Twin says
// with which other history an echo compares. Names are file names without .patch, ascending.
// Example:  KV_ASSIGN_OR_RETURN(auto mutants, read_planted("corpus/mutants"));
#pragma once

#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct PlantedBug {
  std::string name, bug_class, change, origin, found_by, sources, expect, level;
  std::string twin;  // of an echo: what the history is compared with; "" for most
  std::string hash;  // of the change behind the header, hexadecimal

  bool is_equivalent() const { return expect != "killed"; }
  bool is_of_engine() const { return level.starts_with("engine"); }
  /// Does the patch name this check?
  bool names(const std::string& check) const;
};

Result<std::vector<PlantedBug>> read_planted(const std::string& folder);

/// `text`: of the patch `name`.patch.
Result<PlantedBug> parse_planted(const std::string& name, const std::string& text);

}  // namespace kv
