#include "harness/judge/device_stage.h"

#include "harness/simt/control/finding_names.h"

namespace kv {
namespace {

bool fails(uint32_t kind, const DevicePolicy& policy) {
  switch (kind) {
    case KV_SIMT_KIND_LEAK:
      return policy.leaks_fail;
    case KV_SIMT_KIND_RACE_SAME_VALUE:
    case KV_SIMT_KIND_UNSUPPORTED:
      return false;
    default:
      return true;
  }
}

std::string location(const DeviceFinding& f) {
  if (!f.source_file.empty()) return f.source_file + ":" + std::to_string(f.source_line);
  return "PTX line " + std::to_string(f.ptx_line);
}

// A finding that stands for others which were not kept is never accepted: they may be anywhere.
bool is_accepted(const DeviceFinding& f, std::span<const Suppression> suppressions) {
  if (f.not_kept > 0) return false;
  const SourcePlace places[] = {{f.source_file, f.source_line},
                                {f.inlined_at_file, f.inlined_at_line}};
  return find_suppression(suppressions, finding_name(f.kind), places) != nullptr;
}

}  // namespace

std::string finding_kind_name(uint32_t kind) { return dashed(finding_name(kind)); }

std::vector<DeviceFinding> not_suppressed(std::span<const DeviceFinding> findings,
                                          std::span<const Suppression> suppressions) {
  std::vector<DeviceFinding> rest;
  for (const DeviceFinding& f : findings) {
    if (!is_accepted(f, suppressions)) rest.push_back(f);
  }
  return rest;
}

std::optional<Failure> judge_findings(std::span<const DeviceFinding> findings,
                                      const DevicePolicy& policy) {
  for (const DeviceFinding& f : findings) {
    if (!fails(f.kind, policy)) continue;
    const std::string kind = finding_kind_name(f.kind);
    std::string message = "The device found: " + kind;
    if (!f.kernel.empty()) message += " in " + f.kernel + " at " + location(f);
    message += ". " + f.message;
    return Failure{Stage::kDevice, "device:" + kind, std::move(message)};
  }
  return std::nullopt;
}

std::vector<DeviceFinding> decisive_findings(std::span<const DeviceFinding> findings,
                                             const DevicePolicy& policy) {
  std::vector<DeviceFinding> decisive;
  for (const DeviceFinding& f : findings) {
    if (fails(f.kind, policy) || f.kind == KV_SIMT_KIND_UNSUPPORTED) decisive.push_back(f);
  }
  return decisive;
}

std::string unsupported_instruction(std::span<const DeviceFinding> findings) {
  for (const DeviceFinding& f : findings) {
    if (f.kind == KV_SIMT_KIND_UNSUPPORTED) return f.message;
  }
  return "";
}

std::optional<Failure> judge_end(const RunEnd& end) {
  const auto failure = [&](const char* name, const char* what) {
    return Failure{Stage::kDevice, name,
                   std::string(what) + " during operation " + std::to_string(end.op_index) + ": " +
                       end.message};
  };
  switch (end.outcome) {
    case RunOutcome::kCrashed:
      return failure("crash", "The worker process crashed");
    case RunOutcome::kHung:
      return failure("hang", "The worker process hung");
    case RunOutcome::kMemory:
      return failure("memory", "The worker process ran out of memory");
    default:
      return std::nullopt;
  }
}

}  // namespace kv
