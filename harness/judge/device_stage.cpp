#include "harness/judge/device_stage.h"

#include "harness/simt/control/kv_simt_control.h"

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

}  // namespace

std::string finding_kind_name(uint32_t kind) {
  switch (kind) {
    case KV_SIMT_KIND_OUT_OF_BOUNDS:
      return "out-of-bounds";
    case KV_SIMT_KIND_USE_AFTER_FREE:
      return "use-after-free";
    case KV_SIMT_KIND_MISALIGNED:
      return "misaligned";
    case KV_SIMT_KIND_ACCESS_RIGHTS:
      return "access-rights";
    case KV_SIMT_KIND_UNDEFINED:
      return "undefined-data";
    case KV_SIMT_KIND_RACE:
      return "race";
    case KV_SIMT_KIND_BARRIER:
      return "barrier";
    case KV_SIMT_KIND_ASYNC:
      return "async-copy";
    case KV_SIMT_KIND_HANG:
      return "hang";
    case KV_SIMT_KIND_TRAP:
      return "trap";
    case KV_SIMT_KIND_UNSUPPORTED:
      return "unsupported";
    case KV_SIMT_KIND_LEAK:
      return "leak";
    case KV_SIMT_KIND_API:
      return "api-misuse";
    case KV_SIMT_KIND_RACE_SAME_VALUE:
      return "race-same-value";
    default:
      return "kind-" + std::to_string(kind);
  }
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
