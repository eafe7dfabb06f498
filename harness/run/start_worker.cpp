#include "harness/run/start_worker.h"

#include <algorithm>

namespace kv {
namespace {

/// Loading a large plugin on a busy machine takes a while, whatever its calls may take.
constexpr std::chrono::milliseconds kStartUpMin{30000};

WorkerSpec spec_of(const WorkerStart& start) {
  WorkerSpec spec;
  spec.executable = start.executable;
  spec.arguments = {"worker", "--device", device_name(start.device), "--plugin", start.plugin_path};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) spec.arguments.insert(spec.arguments.end(), {option, value});
  };
  add("--profile", start.profile_path);
  add("--lcov", start.lcov_path);
  add("--checks", start.checks);
  spec.silence_max = std::max(start.silence_max, kStartUpMin);
  spec.memory_bytes_max = start.memory_bytes_max;
  return spec;
}

}  // namespace

Result<StartedWorker> start_worker(const WorkerStart& start) {
  StartedWorker worker;
  KV_ASSIGN_OR_RETURN(worker.process, WorkerProcess::start(spec_of(start)));
  const WorkerEvent event = worker.process->receive();
  if (const auto* ending = std::get_if<Ending>(&event))
    return bad_input("loading the plugin '" + start.plugin_path + "' ended the worker process: " +
                     ending->message + (ending->output.empty() ? "" : "\n" + ending->output));
  const auto& frame = std::get<Frame>(event);
  auto said = frame.type == FrameType::kHello ? decode_hello(frame.payload) : std::nullopt;
  if (!said) return bad_input("the plugin '" + start.plugin_path + "' damaged its worker");
  if (said->error) return *said->error;
  worker.process->set_silence_max(start.silence_max);
  worker.hello = std::move(*said);
  return worker;
}

}  // namespace kv
