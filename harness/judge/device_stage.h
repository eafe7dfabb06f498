// Purpose: stage 0, findings of the CPU device, and how the worker ended.
// Contract: races in which both sides wrote the same value are reported but do not fail a case;
// leaks fail it only when asked to; an instruction that the device does not know makes the case
// unsupported, not wrong.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/failure.h"
#include "harness/judge/suppressions.h"
#include "harness/run/observation.h"

namespace kv {

struct DevicePolicy {
  bool leaks_fail = false;
};

/// Those that no suppression accepts, in their order.
std::vector<DeviceFinding> not_suppressed(std::span<const DeviceFinding> findings,
                                          std::span<const Suppression> suppressions);
std::optional<Failure> judge_findings(std::span<const DeviceFinding> findings,
                                      const DevicePolicy& policy);
/// Those that fail a case, or keep its code from running; the others are only listed.
std::vector<DeviceFinding> decisive_findings(std::span<const DeviceFinding> findings,
                                             const DevicePolicy& policy);
/// The device's reason for not running the code at all, or "".
std::string unsupported_instruction(std::span<const DeviceFinding> findings);
/// Crash, hang and memory are failures; every other end is none.
std::optional<Failure> judge_end(const RunEnd& end);
/// The kind's name with '-' for blanks: "race", "out-of-bounds", ...
std::string finding_kind_name(uint32_t kind);

}  // namespace kv
