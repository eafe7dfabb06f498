// Purpose: the internal command that `kverify mutants --matrix` gives each bug of a kernel to.
// Contract: the corpus, then drawn cases, each with its image, in this process; the result is JSON
// of the form that `check --json` has, with one failure for each objector and no times.
// Example:  mutants_attribute({.plugin = "libx.so", .json = "x.json"});
#pragma once

#include <cstdint>
#include <string>

#include "harness/core/result.h"
#include "harness/report/exit_code.h"

namespace kv::cli {

struct AttributeOptions {
  std::string plugin, corpus = "corpus", json;
  uint64_t seed = 1, cases = 100;
};
Result<ExitCode> mutants_attribute(const AttributeOptions& options);

}  // namespace kv::cli
