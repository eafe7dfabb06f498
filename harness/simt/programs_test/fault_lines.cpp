#include "harness/simt/programs_test/fault_lines.h"

#include <fstream>

namespace kv::simt::programs {

FaultLines find_fault_lines(const std::string& file, const std::string& program) {
  const std::string mark = "// FAULT: " + program;
  std::ifstream in(file);
  FaultLines found;
  std::string line;
  for (uint32_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with(mark)) found.lines.insert(number);
    if (line.ends_with(mark + " (host)")) found.on_host = true;
  }
  return found;
}

}  // namespace kv::simt::programs
