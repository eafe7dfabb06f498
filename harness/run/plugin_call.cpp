#include "harness/run/plugin_call.h"

namespace kv {

bool PluginCall::record(OpStatus status, const std::string& message) {
  if (observation_.status == OpStatus::kOk) {
    observation_.status = status;
    observation_.message = message;
  }
  return false;
}

void PluginCall::fail(const std::string& message) { record(OpStatus::kFailed, message); }

bool PluginCall::accept(Phase phase, int status, const std::string& text) {
  const std::string name = phase_name(static_cast<uint32_t>(phase));
  const int code = bench_.runtime.last_error();
  switch (status) {
    case KV_OK:
      if (code == 0) return true;
      return record(OpStatus::kFailed, name + " returned KV_OK but left a CUDA error behind: " +
                                           bench_.runtime.describe(code));
    case KV_REFUSED:
      return record(OpStatus::kRefused, name + " refused: " + text);
    case KV_UNSUPPORTED:
      return record(OpStatus::kUnsupported, name + ": " + text);
    case KV_FAILED:
      return record(OpStatus::kFailed, name + " failed: " + text);
    default:
      return record(OpStatus::kFailed,
                    name + " returned " + std::to_string(status) + ", which is no kv_status");
  }
}

bool PluginCall::accept_graph(Phase phase, const Result<void>& outcome) {
  if (outcome.ok()) return true;
  return record(OpStatus::kFailed, std::string(phase_name(static_cast<uint32_t>(phase))) +
                                       " was promised to run from a graph, but " +
                                       outcome.error().message);
}

bool PluginCall::settle() { return wait(nullptr); }

bool PluginCall::synchronize(void* stream) {
  bench_.status.enter(Phase::kSynchronising);
  return wait(stream);
}

bool PluginCall::wait(void* stream) {
  const int code = bench_.runtime.synchronize_stream(stream);
  const int left = bench_.runtime.last_error();
  if (code == 0 && left == 0) return true;
  return record(OpStatus::kFailed,
                "the device failed: " + bench_.runtime.describe(code != 0 ? code : left));
}

}  // namespace kv
