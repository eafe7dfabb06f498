// Purpose: PTX text to a Module with every name resolved.
// Contract: the Module owns the text and never moves (its views point into itself). The first bad
// construct ends the parse with one error: line, what was expected, the offending token. Hostile
// text costs time and memory proportional to its size; the limits are below. PTX ISA 9.0; textures,
// surfaces, samplers and .alias are refused as unsupported.
// Example:
//   auto module = parse_module(std::move(text));
//   if (!module.ok()) return module.error();  // "PTX line 12: expected ';', got 'foo'"
#pragma once

#include <memory>
#include <string>

#include "harness/core/result.h"
#include "harness/simt/ptx/module.h"

namespace kv::simt::ptx {

struct Limits {
  static constexpr size_t kTextBytes = size_t{256} << 20;
  static constexpr size_t kFunctionRegisters = size_t{1} << 18;
  static constexpr size_t kModuleRegisters = size_t{1} << 21;
  static constexpr size_t kRegisterNameBytes = size_t{64} << 20;  // ranges of long names
  static constexpr uint64_t kVariableBytes = uint64_t{1} << 36;
  static constexpr uint64_t kInitialBytes = uint64_t{1} << 28;  // all initialisers together
  static constexpr size_t kScopeDepth = 64;
  static constexpr int kExpressionDepth = 64;
  static constexpr size_t kDimensions = 8;
  static constexpr size_t kVectorElements = 256;  // wgmma: 128 accumulator registers
  static constexpr size_t kOperands = 64;
  static constexpr size_t kParameters = 4096;
  static constexpr uint64_t kParameterBytes = 32764;  // ISA section 5.1.6, kernel parameters
  static constexpr uint64_t kAlignBytes = 1 << 20;
  static constexpr uint64_t kFiles = 1 << 16;
  static constexpr size_t kBranchTargets = 1 << 16;  // all tables together, as expanded
};

Result<std::unique_ptr<Module>> parse_module(std::string text);

}  // namespace kv::simt::ptx
