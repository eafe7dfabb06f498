// Purpose: the minimiser, as `minimize` and `check` use it: with the best case always in a file.
// Contract: `out` holds the original before the first candidate runs and the best case ever after,
// each with the digest of its inputs.
// Example: minimize_to(minimized_path(path), c, pinned, reproducer, {.attempts_max = 300});
#pragma once

#include <string>

#include "harness/certify/reproduce.h"
#include "harness/minimize/minimize.h"

namespace kv::cli {

/// "corpus/crashing/a.json" -> "corpus/crashing/a.min.json"
std::string minimized_path(const std::string& case_path);

Result<Minimized> minimize_to(const std::string& out, const Case& c, const Fingerprint& pinned,
                              Reproducer& reproducer, const MinimizeLimits& limits);

}  // namespace kv::cli
