// Purpose: the names under which verdicts, stages and findings appear in text and in JSON.
// Contract: stable: scripts and corpora depend on them.
// Example: outcome_name(Outcome::kFail) == "fail"
#pragma once

#include <cstdint>
#include <string>

#include "harness/judge/verdict.h"

namespace kv {

const char* outcome_name(Outcome outcome);
/// "global", "shared", ...; "" when there is none.
const char* space_name(uint32_t space);

/// Shortest decimal that reads back as the same double, "nan", "inf", "-inf".
std::string number_text(double value);

}  // namespace kv
