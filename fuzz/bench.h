// Purpose: runs cases on a plugin in this process, and judges them.
// Contract: for our own plugin only, no process apart: whatever it damages is damaged here. The CPU
// device (lib/simt/libcudart.so.13) and the plugin (lib/libkvattn_plugin.so) are looked for beside
// the executable and one folder above; KVERIFY_SIMT and KVERIFY_FUZZ_PLUGIN name others. The device
// counts edges of kernels into guidance.h's counters. Nothing of a case remains after run().
// Example:  Bench& bench = the_bench(); FuzzRun run = bench.run(c);
#pragma once

#include <string>

#include "harness/gen/draw.h"
#include "harness/judge/verdict.h"

namespace kv::fuzzing {

/// The file beside the executable, one folder above, or what the variable names.
std::string find_library(const char* variable, const std::string& file);

struct FuzzRun {
  Case c;  // of which the verdict is told: the case, or its image
  Verdict verdict;
  uint32_t splits = 0;  // of the last step
};

/// Loads the CPU device and the plugin; says what is missing and exits with 3 where it cannot.
void open_bench();
/// What the generator may draw for the plugin, limits left open.
DrawOptions drawing();
FuzzRun run_case(const Case& c);

}  // namespace kv::fuzzing
