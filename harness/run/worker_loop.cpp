#include "harness/run/worker_loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "harness/case/json.h"
#include "harness/plugin/device_config.h"
#include "harness/plugin/frame.h"
#include "harness/plugin/worker_process.h"
#include "harness/run/case_codec.h"
#include "harness/run/kernel_run.h"
#include "harness/run/probe.h"
#include "harness/run/wire.h"
#include "harness/simt/control/check_names.h"

namespace kv {
namespace {

/// Die with the parent, and be the first that the kernel kills when memory runs out.
void become_expendable() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1000", 4);
  close(file);
}

StatusPage* map_status_page() {
  void* page =
      mmap(nullptr, sizeof(StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED, kWorkerStatusPage, 0);
  return page == MAP_FAILED ? nullptr : static_cast<StatusPage*>(page);
}

void say_hello(const Hello& hello) {
  write_frame(kWorkerSocket, FrameType::kHello, encode_hello(hello));
}

int say_failed(const Error& error) {
  Hello hello;
  hello.error = error;
  say_hello(hello);
  return 0;
}

/// The file is read where the case was not sent.
Result<Case> case_of(const RunRequest& request) {
  if (request.case_bytes.empty()) return load_case(request.case_path);
  if (auto c = decode_case(request.case_bytes)) return std::move(*c);
  return environment_error("a case arrived damaged: " + request.case_path);
}

/// What a case gives the parent. Before the next operation runs, which may be the worker's end, it
/// has the one before; the last goes with the end, in one call of the system.
class Answer {
 public:
  void add(std::vector<std::byte> payload, bool is_last) {
    if (is_last) {
      last_ = {FrameType::kOperation, std::move(payload)};
    } else {
      write_frame(kWorkerSocket, FrameType::kOperation, payload);
    }
  }
  void end(std::vector<std::byte> payload) const {
    if (last_) {
      write_frames(kWorkerSocket, *last_, {FrameType::kEnd, std::move(payload)});
    } else {
      write_frame(kWorkerSocket, FrameType::kEnd, payload);
    }
  }

 private:
  std::optional<Frame> last_;
};

RunEnd run_case(const RunRequest& request, const Bench& bench, Answer& answer) {
  bench.status.enter(Phase::kPreparing);
  bench.status.op_index = 0;
  bench.status.layer = 0;
  const auto c = case_of(request);
  if (!c.ok()) {
    RunEnd end;
    end.outcome = RunOutcome::kEnvironment;
    end.message = c.error().message;
    return end;
  }
  return run_kernel_case(*c, bench, [&](const OpObservation& observation) {
    answer.add(encode_operation(request.number, observation),
               observation.op_index + 1 == c->ops.size());
  });
}

Result<void> start_profile(const kv_simt_control_v1* control) {
  if (control == nullptr) return bad_input("profiles are made on --device cpu only");
  return change_device(control, "cannot profile",
                       [](kv_simt_config& config) { config.collect |= KV_SIMT_COLLECT_PROFILE; });
}

/// The checks of a case, and what runs under them: histories keep the configuration of the start.
Result<uint32_t> choose_checks(const WorkerOptions& options, const kv_simt_control_v1* control) {
  if (options.checks.empty()) return uint32_t{KV_SIMT_CHECK_ALL};
  const auto checks = checks_named(options.checks);
  if (!checks) {
    return bad_input(std::string("--checks: expected ") + kCheckNamesExpected + ", got '" +
                     options.checks + "'");
  }
  if (control == nullptr) return bad_input("--checks: there are none on --device cuda");
  KV_RETURN_IF_ERROR(change_device(control, "cannot choose checks",
                                   [&](kv_simt_config& config) { config.checks = *checks; }));
  return *checks;
}

void write_profile(const WorkerOptions& options, const kv_simt_control_v1* control, RunEnd* end) {
  const bool written =
      (options.profile_path.empty() || control->write_profile(options.profile_path.c_str()) == 0) &&
      (options.lcov_path.empty() || control->write_lcov(options.lcov_path.c_str()) == 0);
  if (written) return;
  end->outcome = RunOutcome::kEnvironment;
  end->message = control->last_error();
}

}  // namespace

int run_worker(const WorkerOptions& options) {
  become_expendable();
  StatusPage* status = map_status_page();
  if (status == nullptr) return 3;
  status->enter(Phase::kLoading);
  const auto runtime = load_runtime(options.device);
  if (!runtime.ok()) return say_failed(runtime.error());
  const auto plugin = load_plugin(options.plugin_path, *runtime);
  if (!plugin.ok()) return say_failed(plugin.error());
  status->enter(Phase::kSupports);
  const OfferSet offered = probe_offers(*plugin);
  const auto checks = choose_checks(options, runtime->control);
  if (!checks.ok()) return say_failed(checks.error());
  const bool profiles = !options.profile_path.empty() || !options.lcov_path.empty();
  if (profiles) {
    const auto started = start_profile(runtime->control);
    if (!started.ok()) return say_failed(started.error());
  }
  say_hello({.error = {},
             .plugin = plugin_facts(*plugin),
             .kernel_level = plugin->api->kernel != nullptr,
             .engine_level = plugin->api->engine != nullptr,
             .offered = offered,
             .dispatch = probe_dispatch(*plugin),
             .runtime_path = runtime->path});

  const Bench bench{*plugin, *runtime, *status, *checks};
  status->enter(Phase::kIdle);
  FrameServer serve_engine;
  if (options.engine_server) serve_engine = options.engine_server(*plugin, *runtime);
  FrameReader reader(kWorkerSocket);
  while (const auto frame = reader.read()) {
    if (frame->type == FrameType::kEngine && serve_engine) {
      status->enter(Phase::kAppend);
      write_frame(kWorkerSocket, FrameType::kEnd, serve_engine(frame->payload));
      status->enter(Phase::kIdle);
      continue;
    }
    const auto request = decode_request(frame->payload);
    if (!request) break;
    Answer answer;
    RunEnd end = run_case(*request, bench, answer);
    if (profiles) write_profile(options, runtime->control, &end);
    answer.end(encode_end(request->number, end));
    status->enter(Phase::kIdle);
  }
  // Destructors of foreign libraries may crash; nothing of ours needs them.
  _exit(0);
}

}  // namespace kv
