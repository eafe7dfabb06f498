// Purpose: a file for each process of a program, and for each program that a process becomes.
// Contract: PATH.PID, or PATH.PID.N where a program that the process was before exec() has left
// that. `ending` follows.
#pragma once

#include <unistd.h>

#include <string>

namespace kv::simt::cudart {

inline std::string process_file(const std::string& path, const std::string& ending = "") {
  const std::string base = path + "." + std::to_string(getpid());
  std::string name = base + ending;
  for (int n = 1; access(name.c_str(), F_OK) == 0; ++n) {
    name = base + "." + std::to_string(n) + ending;
  }
  return name;
}

}  // namespace kv::simt::cudart
