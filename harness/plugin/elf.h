// Purpose: what a shared object says about itself, read before the dynamic linker may trust it.
// Contract: every offset is checked against the file's size, so truncated and hostile files give an
// error (bad input) and never a crash; dlopen alone dies of SIGBUS on some of them. Reads a few
// kilobytes, whatever the file's size. Only what kverify runs on: ELF64, little endian, x86-64.
// Example: auto facts = inspect_elf("libfoo.so"); for (auto& n : facts->needed) puts(n.c_str());
#pragma once

#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct ElfFacts {
  std::vector<std::string> needed;  // DT_NEEDED, in order
  std::string soname;               // DT_SONAME, "" for none
  bool device_code = false;         // has a section of CUDA device code (.nv_fatbin)
};

Result<ElfFacts> inspect_elf(const std::string& path);

}  // namespace kv
