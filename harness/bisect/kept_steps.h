// Purpose: what a search tried, in a file, so that the next run need not build it again.
// Contract: one JSON object a line, appended as soon as a commit was tried: commit, result, and the
// search that it belongs to (case, build command, plugin, device, checks, limits, kverify), whose
// others are ignored. A last line without its end, of a run that was killed, is left out.
// Example: KV_ASSIGN_OR_RETURN(KeptSteps kept, KeptSteps::open(path, search));
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/core/result.h"

namespace kv {

class KeptSteps {
 public:
  /// `path`: "" to keep nothing.
  static Result<KeptSteps> open(const std::string& path, const std::string& search);

  std::optional<std::string> result_of(const std::string& commit) const;
  Result<void> add(const std::string& commit, const std::string& result);

 private:
  std::string path_, search_;
  std::map<std::string, std::string> results_;
};

}  // namespace kv
