// Purpose: what a fuzz target leaves behind of an input that it objects to.
// Contract: two files in the folder of libFuzzer's -artifact_prefix (default: the working folder):
// `finding-<digest>` with the raw bytes, and `finding-<digest>.case.json`, which `kverify replay`
// runs in a process of its own. Then the program is ended, as libFuzzer expects of a finding. The
// same is written, as well as it can be, when the code under test crashes this process.
// Example:  begin_input(bytes); running_case(&c); ... if (wrong) end_with_finding(c, "wrong
// value");
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/case/case.h"

namespace kv::fuzzing {

/// From libFuzzer's -artifact_prefix=.
void set_finding_prefix(std::string prefix);
/// `bytes` must live until the next call.
void begin_input(std::span<const uint8_t> bytes);
/// The case of the input, as soon as it is known; null: over.
void running_case(const Case* c);
/// Inputs begun so far.
uint64_t inputs();
/// Writes both files, says what and where, and aborts.
[[noreturn]] void end_with_finding(const Case& c, const std::string& what);

}  // namespace kv::fuzzing
