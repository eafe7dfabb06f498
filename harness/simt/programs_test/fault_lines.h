// Purpose: where a program's fault stands in its source.
// Contract: reads the file; see program.h for the marks.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace kv::simt::programs {

struct FaultLines {
  std::set<uint32_t> lines;  // 1-based, marked `// FAULT: <program>`
  bool on_host = false;      // marked `// FAULT: <program> (host)`
};

FaultLines find_fault_lines(const std::string& file, const std::string& program);

}  // namespace kv::simt::programs
