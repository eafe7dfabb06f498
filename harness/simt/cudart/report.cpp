#include "harness/simt/cudart/report.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>

#include "harness/simt/control/finding_names.h"
#include "harness/simt/cudart/errors.h"
#include "harness/simt/cudart/process_file.h"
#include "harness/simt/cudart/runtime.h"

namespace kv::simt::cudart {
namespace {

constexpr char kUnfinished[] = ".part";  // after a file's name while it is written

std::string plural(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

std::string show(const uint32_t (&d)[3]) {
  return "(" + std::to_string(d[0]) + ", " + std::to_string(d[1]) + ", " + std::to_string(d[2]) +
         ")";
}

bool write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool written = file && std::fputs(text.c_str(), file) >= 0;
  return (!file || std::fclose(file) == 0) && written;
}

/// The file is whole, the old or the new one, whenever the process dies.
bool replace_file(const std::string& path, const std::string& text) {
  const std::string aside = path + kUnfinished;
  return write_file(aside, text) && std::rename(aside.c_str(), path.c_str()) == 0;
}

void write_report_json(Runtime& runtime) {
  std::string& file = runtime.report_json_file;
  if (runtime.report_json_process != getpid()) {  // its first report; it may be a fork
    runtime.report_json_process = getpid();
    file = process_file(runtime.report_json_path);
  }
  if (!replace_file(file, report_json(runtime))) {
    notice("KV_SIMT_REPORT_JSON: cannot write " + file);
  }
}

std::string place(const char* file, uint32_t line) {
  return std::string(file) + ":" + std::to_string(line);
}

}  // namespace

std::string describe(const kv_simt_finding& f) {
  std::string text = std::string(finding_name(f.kind)) + ": " + f.message + "\n";
  if (f.source_file[0]) {
    text += "  at " + place(f.source_file, f.source_line);
    if (f.inlined_at_file[0]) {
      text += ", inlined at " + place(f.inlined_at_file, f.inlined_at_line);
    }
    text += "\n";
  }
  if (f.kernel[0]) {
    text += "  in kernel " + std::string(f.kernel);
    if (f.launch) {  // else it never began
      text += ", launch " + std::to_string(f.launch) + ", block " + show(f.block) + ", thread " +
              show(f.thread);
    }
    text += "\n";
  }
  if (f.instruction[0]) {
    text +=
        "  by " + std::string(f.instruction) + ", PTX line " + std::to_string(f.ptx_line) + "\n";
  }
  if (f.allocation_number) {
    text += "  near allocation " + std::to_string(f.allocation_number) + ", " +
            plural(f.allocation_bytes, "byte") + " at " + hex(f.allocation_base) + "\n";
  }
  if (f.repeats) text += "  and " + plural(f.repeats, "time") + " more\n";
  return text;
}

std::string report(const Device& device) {
  const kv_simt_config& config = device.config();
  std::string text = "kverify: " + plural(device.finding_count(), "finding") + ", " +
                     plural(device.counters().launches, "launch") + " on the CPU device (sm_" +
                     std::to_string(config.model_sm) + ", schedule seed " +
                     std::to_string(config.schedule_seed) + ")\n";
  for (const kv_simt_finding& finding : device.findings()) text += describe(finding);
  const uint64_t dropped = device.finding_count() - device.findings().size();
  if (dropped) text += plural(dropped, "further finding") + " not kept\n";
  return text;
}

bool write_refusal(const std::string& path, const std::string& sentence, int status) {
  const nlohmann::ordered_json json = {{"refused", sentence}, {"status", status}};
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return replace_file(process_file(path), json.dump(1, ' ', false, kReplace) + "\n");
}

std::string report_json(const Runtime& runtime) {
  const Device& device = runtime.device;
  nlohmann::ordered_json json;
  json["launches"] = device.counters().launches - runtime.inherited_launches;
  json["sm"] = device.config().model_sm;
  json["schedule_seed"] = device.config().schedule_seed;
  json["time_limit_met"] = runtime.is_late;
  json["findings_not_kept"] = device.finding_count() - device.findings().size();
  auto& list = json["findings"] = nlohmann::ordered_json::array();
  for (const kv_simt_finding& f : device.findings()) {
    list.push_back({{"kind", finding_name(f.kind)},
                    {"source_file", f.source_file},
                    {"source_line", f.source_line},
                    {"inlined_at_file", f.inlined_at_file},
                    {"inlined_at_line", f.inlined_at_line},
                    {"kernel", f.kernel},
                    {"repeats", f.repeats},
                    {"text", describe(f)}});
  }
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return json.dump(1, ' ', false, kReplace) + "\n";
}

void checkpoint_report(Runtime& runtime) {
  const size_t kept = runtime.device.findings().size();
  if (runtime.report_json_path.empty() || kept == runtime.findings_reported) return;
  runtime.findings_reported = kept;
  write_report_json(runtime);
}

namespace {

void write_report(const Runtime& runtime) {
  const std::string text = report(runtime.device);
  std::fflush(stdout);  // what the program said comes first
  if (runtime.report_path == "-") {
    std::fputs(text.c_str(), stderr);
  } else if (!write_file(runtime.report_path, text)) {
    notice("KV_SIMT_REPORT: cannot write " + runtime.report_path);
  }
}

void write_profiles(const Runtime& runtime) {
  const auto report = [](const char* variable, const Result<void>& written) {
    if (!written.ok()) notice(std::string(variable) + ": " + written.error().message);
  };
  const Profiler& profiler = runtime.profiler;
  const std::string &profile = runtime.profile_path, &lcov = runtime.lcov_path;
  if (!profile.empty()) report("KV_SIMT_PROFILE", profiler.write_profile(profile));
  if (!lcov.empty()) report("KV_SIMT_LCOV", profiler.write_lcov(lcov));
}

/// What is alive now has leaked, unless the context is lost: then nothing could be freed. Host
/// memory may be gone.
void finish() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  if (!runtime.report_path.empty() || !runtime.report_json_path.empty()) {
    runtime.timeline.drop_host_work();
    runtime.timeline.complete_all();
    const bool has_context = runtime.device_error == cudaSuccess;
    if (has_context && runtime.device.config().checks & KV_SIMT_CHECK_LEAK) runtime.report_leaks();
    if (!runtime.report_path.empty()) write_report(runtime);
    if (!runtime.report_json_path.empty()) write_report_json(runtime);
  }
  write_profiles(runtime);
  runtime.tally.end();
  runtime.is_finished = true;
}

// Nobody else may be amidst a call when the process is copied.
void before_fork() { Runtime::instance().mutex.lock(); }
void after_fork() { Runtime::instance().mutex.unlock(); }
void in_child() {
  Runtime& runtime = Runtime::instance();
  new (&runtime.mutex) std::recursive_mutex;  // it was locked by a thread that is not here
  runtime.begin_child();
}

/// The library is loaded before the program's own globals are made, so finish() runs after their
/// destructors, and before the Device's.
[[gnu::constructor]] void start() {
  (void)Runtime::instance();
  std::atexit(finish);
  pthread_atfork(before_fork, after_fork, in_child);
}

}  // namespace
}  // namespace kv::simt::cudart
