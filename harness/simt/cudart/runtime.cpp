#include "harness/simt/cudart/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/environment.h"
#include "harness/simt/cudart/errors.h"
#include "harness/simt/cudart/report.h"

namespace kv::simt::cudart {
namespace {

constexpr uint64_t kMemoryBytesDefault = uint64_t{8} << 30;
constexpr int kExitBadInput = 2, kExitEnvironment = 3;

/// Ends the process with a sentence: to whoever wants a report instead of one, or to a person.
[[noreturn]] void refuse(const std::string& sentence, int status) {
  const char* const report = std::getenv("KV_SIMT_REPORT_JSON");
  if (report && report[0] && write_refusal(report, sentence, status)) _exit(status);
  refuse_to_run(sentence, status);
}

Device& device_of_this_machine() {
  const Result<void> available = Device::available();
  if (!available.ok()) refuse(available.error().message, kExitEnvironment);
  return Device::instance();
}

kv_simt_finding host_finding(uint32_t kind, const std::string& message) {
  kv_simt_finding finding = {};
  finding.struct_bytes = sizeof finding;
  finding.kind = kind;
  std::snprintf(finding.message, sizeof finding.message, "%s", message.c_str());
  return finding;
}

}  // namespace

Runtime& Runtime::instance() {
  static auto* runtime = new Runtime;  // never destroyed: exit handlers of the program still call
  return *runtime;
}

Runtime::Runtime()
    : device(device_of_this_machine()),
      memory(device),
      mutations(device),
      profiler(device),
      images(device, mutations, profiler) {
  default_pool = pools.insert({});
  const auto environment = read_environment(std::getenv, device.config());
  if (!environment.ok()) refuse(environment.error().message, kExitBadInput);
  report_path = environment->report;
  report_json_path = environment->report_json;
  profile_path = environment->profile;
  lcov_path = environment->lcov;
  if (!report_json_path.empty()) tally.keep_at(report_json_path);
  if (environment->time_limit_s > 0) {
    device.set_deadline(std::chrono::steady_clock::now() +
                        std::chrono::seconds(environment->time_limit_s));
  }
  const auto configured = configure(environment->config);
  if (!configured.ok()) refuse(configured.error().message, kExitBadInput);
}

Work Runtime::as_work(const Operation& operation, std::vector<WorkId> after) {
  auto action = [this, operation] { run(operation); };
  return {std::move(action), std::move(after), operation.touches_host};
}

void Runtime::run(const Operation& operation) {
  if (device_error != cudaSuccess) return;
  device.set_order(timeline.order());
  if (operation.may_write_host) ++host_writes;
  device_error = operation.run();
  device.set_order({});
  checkpoint_report(*this);
}

cudaError_t Runtime::submit(Stream& stream, Operation operation) {
  if (stream.capture) return capture_operation(stream, std::move(operation));
  if (streams.is_legacy(stream)) {
    if (const auto error = forbid_legacy_during_capture(streams); error != cudaSuccess) {
      return error;
    }
  }
  stream.tail = timeline.add(as_work(operation, streams.predecessors(stream)));
  return cudaSuccess;
}

cudaError_t Runtime::perform(Stream& stream, Operation operation) {
  if (!is_idle() || stream.capture) {
    const cudaError_t error = submit(stream, std::move(operation));
    return error != cudaSuccess || stream.capture ? error : synchronize(stream);
  }
  if (streams.is_legacy(stream)) {
    if (const auto error = forbid_legacy_during_capture(streams); error != cudaSuccess) {
      return error;
    }
  }
  stream.tail = timeline.run_alone([&] { run(operation); });
  return device_error;
}

cudaError_t Runtime::synchronize(Stream& stream) {
  if (stream.capture) return break_capture(stream);
  timeline.complete(awaited(stream));
  return device_error;
}

std::vector<WorkId> Runtime::awaited(const Stream& stream) const {
  return streams.is_legacy(stream) ? streams.predecessors(stream) : std::vector{stream.tail};
}

cudaError_t Runtime::synchronize_device() {
  if (const auto error = forbid_during_capture(streams); error != cudaSuccess) return error;
  timeline.complete_all();
  return device_error;
}

cudaError_t Runtime::query(const std::vector<WorkId>& targets) {
  timeline.step(targets);
  if (device_error != cudaSuccess) return device_error;
  const bool done = std::all_of(targets.begin(), targets.end(),
                                [this](WorkId id) { return timeline.is_done(id); });
  return done ? cudaSuccess : cudaErrorNotReady;
}

void Runtime::wait_for(Stream& stream, WorkId before) {
  if (timeline.is_done(before)) return;
  std::vector<WorkId> after = streams.predecessors(stream);
  after.push_back(before);
  stream.tail = timeline.add({.action = nullptr, .after = std::move(after)});
}

cudaError_t Runtime::replay(Stream& stream, GraphExec& exec) {
  std::vector<WorkId> before = streams.predecessors(stream);
  before.push_back(exec.last);
  std::vector<WorkId> ids;
  for (const Graph::Node& node : exec.graph.nodes) {
    std::vector<WorkId> after = node.after.empty() ? before : std::vector<WorkId>();
    for (const size_t index : node.after) after.push_back(ids[index]);
    ids.push_back(timeline.add(as_work(node.operation, std::move(after))));
  }
  std::vector<WorkId> ends = before;
  for (const size_t leaf : leaves_of(exec.graph)) ends.push_back(ids[leaf]);
  stream.tail = exec.last = timeline.add({.action = nullptr, .after = std::move(ends)});
  return cudaSuccess;
}

uint64_t Runtime::memory_bytes() const {
  const uint64_t bytes = device.config().memory_bytes;
  return bytes ? bytes : kMemoryBytesDefault;
}

void Runtime::report_misuse(const std::string& call, const std::string& sentence,
                            uint64_t address) {
  kv_simt_finding finding = host_finding(KV_SIMT_KIND_API, call + ": " + sentence);
  finding.address = address;
  device.add_finding(finding);
  checkpoint_report(*this);
}

void Runtime::report_unsupported(const std::string& kernel, const std::string& sentence) {
  kv_simt_finding finding = host_finding(KV_SIMT_KIND_UNSUPPORTED, sentence);
  std::snprintf(finding.kernel, sizeof finding.kernel, "%s", kernel.c_str());
  device.add_finding(finding);
}

uint64_t Runtime::report_leaks() {
  uint64_t leaks = 0;
  for (const auto& [base, range] : memory.ranges()) {
    if (!is_device_allocation(range.owner) || range.number <= inherited_allocations) continue;
    ++leaks;
    kv_simt_finding finding = host_finding(
        KV_SIMT_KIND_LEAK, "device allocation " + std::to_string(range.number) + " of " +
                               std::to_string(range.bytes) + " bytes was never freed");
    finding.address = finding.allocation_base = base;
    finding.allocation_bytes = range.bytes;
    finding.allocation_number = range.number;
    device.add_finding(finding);
  }
  return leaks;
}

void Runtime::begin_child() {
  timeline.drop_all();
  device.clear_findings();
  findings_reported = 0;
  inherited_launches = device.counters().launches;
  for (const auto& [base, range] : memory.ranges()) {
    inherited_allocations = std::max<uint64_t>(inherited_allocations, range.number);
  }
}

void Runtime::forget_context() {
  timeline.drop_all();
  if (device.config().checks & KV_SIMT_CHECK_LEAK) report_leaks();
  const std::map<uint64_t, Range> ranges = memory.ranges();
  for (const auto& [base, range] : ranges) {
    if (range.owner == Owner::kSymbol || range.owner == Owner::kRegistered) continue;
    (void)memory.free(base);
  }
  streams.forget_created();
  events.clear();
  graphs.clear();
  graph_execs.clear();
  device_error = cudaSuccess;
  last_error() = cudaSuccess;
}

void Runtime::reset() {
  timeline.drop_all();
  timeline.restart();
  streams.forget_work();
  for (const auto& [number, exec] : graph_execs) exec->last = 0;
  device.reset();
  memory.forget_allocations();
  inherited_launches = inherited_allocations = 0;
  profiler.forget_launches();
  device_error = cudaSuccess;
  last_error() = cudaSuccess;
}

Result<void> Runtime::configure(const kv_simt_config& config) {
  KV_RETURN_IF_ERROR(device.configure(config));
  timeline.set_seed(config.schedule_seed);
  return {};
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

Stream* stream_of(Runtime& runtime, cudaStream_t handle, const char* call) {
  Stream* stream = runtime.streams.find(handle);
  if (!stream) runtime.report_misuse(call, "the stream handle is not that of a live stream");
  return stream;
}

Event* event_of(Runtime& runtime, cudaEvent_t handle, const char* call) {
  Event* event = runtime.events.find(handle);
  if (!event) runtime.report_misuse(call, "the event handle is not that of a live event");
  return event;
}

}  // namespace kv::simt::cudart
