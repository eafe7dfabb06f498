// Purpose: which source lines of the kernels ran, as an lcov tracefile.
// Contract: a line counts how often a warp executed the busiest of its instructions, in all
// functions that hold the line (template instances) together. Files and lines ascend. Only what was
// compiled with -lineinfo has lines.
// Source: geninfo(1), "TRACEFILE FORMAT".
// Example:  LineCoverage lines; lines.add(module, count); write(path, lines.lcov());
#pragma once

#include <functional>
#include <map>
#include <string>

#include "harness/simt/ptx/module.h"

namespace kv::simt::profile {

class LineCoverage {
 public:
  /// How often warps executed instruction `instruction` of function `function`.
  using Executions = std::function<uint64_t(uint32_t function, uint32_t instruction)>;

  void add(const ptx::Module& module, const Executions& executions);
  std::string lcov() const;

 private:
  using Lines = std::map<uint32_t, uint64_t>;
  std::map<std::string, Lines, std::less<>> files_;
};

}  // namespace kv::simt::profile
