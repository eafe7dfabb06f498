// Purpose: the faults that a legacy kernel is known to have, so that a run fails on new ones only.
// Contract: a text file, one fingerprint (harness/judge/fingerprint.h) a line; empty lines and
// those that begin with # say nothing, any other line is bad input. A fingerprint is coarse: a new
// fault with the fingerprint of a known one is taken for it, and the report says how many findings
// that were. Example: KV_ASSIGN_OR_RETURN(const auto known, read_baseline("known_faults.txt"));
#pragma once

#include <set>
#include <string>

#include "harness/core/result.h"

namespace kv::cli {

Result<std::set<std::string>> read_baseline(const std::string& path);
Result<void> write_baseline(const std::string& path, const std::set<std::string>& faults);

}  // namespace kv::cli
