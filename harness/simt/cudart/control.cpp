// Exported: the control table.
#include <algorithm>
#include <cstring>
#include <string>

#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

std::string& control_error() {
  static auto* text = new std::string;
  return *text;
}

int failed(const std::string& sentence) {
  control_error() = sentence;
  return -1;
}

/// Runs `body`, which returns a Result<void>, under the lock.
int locked(auto&& body) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const kv::Result<void> result = body(runtime);
  return result.ok() ? 0 : failed(result.error().message);
}

/// Copies as many bytes as both sides know; a caller's struct starts with its own size.
template <class T>
kv::Result<void> copy_out(const T& from, T* to) {
  if (!to) return kv::bad_input("the struct to fill is a null pointer");
  const uint32_t room = to->struct_bytes;
  if (room < sizeof to->struct_bytes) {
    return kv::bad_input("struct_bytes: expected the size of the struct, got " +
                         std::to_string(room));
  }
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(room, sizeof from));
  to->struct_bytes = room;
  return {};
}

const char* last_control_error() { return control_error().c_str(); }

int get_config(kv_simt_config* out) {
  return locked([&](Runtime& runtime) { return copy_out(runtime.device.config(), out); });
}

int configure(const kv_simt_config* config) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!config) return kv::bad_input("configure: the configuration is a null pointer");
    kv_simt_config whole = runtime.device.config();
    std::memcpy(&whole, config, std::min<size_t>(config->struct_bytes, sizeof whole));
    whole.struct_bytes = sizeof whole;
    return runtime.configure(whole);
  });
}

int reset() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.reset();
    return {};
  });
}

int synchronize() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.timeline.complete_all();
    return {};
  });
}

uint64_t finding_count() { return Runtime::instance().device.finding_count(); }

uint64_t finding_kept() { return Runtime::instance().device.findings().size(); }

int finding(uint64_t index, kv_simt_finding* out) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    const auto& findings = runtime.device.findings();
    if (index >= findings.size()) {
      return kv::bad_input("finding: expected an index below " + std::to_string(findings.size()) +
                           ", got " + std::to_string(index));
    }
    return copy_out(findings[index], out);
  });
}

int clear_findings() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.device.clear_findings();
    return {};
  });
}

int counters(kv_simt_counters* out) {
  return locked([&](Runtime& runtime) { return copy_out(runtime.device.counters(), out); });
}

int clear_counters() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.device.clear_counters();
    return {};
  });
}

int set_access(uint64_t address, uint64_t bytes, uint32_t access) {
  return locked(
      [&](Runtime& runtime) { return runtime.device.set_access(address, bytes, access); });
}

/// After what was issued before: a fill that still waits would make its bytes defined again.
int mark(uint64_t address, uint64_t bytes, bool defined) {
  return locked([&](Runtime& runtime) {
    runtime.timeline.complete_all();
    return runtime.device.set_defined(address, bytes, defined);
  });
}

int set_undefined(uint64_t address, uint64_t bytes) { return mark(address, bytes, false); }

int set_defined(uint64_t address, uint64_t bytes) { return mark(address, bytes, true); }

int first_undefined(uint64_t address, uint64_t bytes, uint64_t* offset, uint64_t* length) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!offset || !length) return kv::bad_input("first_undefined: a result is a null pointer");
    runtime.timeline.complete_all();
    KV_ASSIGN_OR_RETURN(const auto run, runtime.device.first_undefined(address, bytes));
    *offset = run.offset;
    *length = run.bytes;
    return {};
  });
}

int report_undefined(uint64_t address, uint64_t bytes, const char* what) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!what) return kv::bad_input("report_undefined: the description is a null pointer");
    runtime.timeline.complete_all();
    return runtime.device.report_undefined(address, bytes, what);
  });
}

int check_leaks() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.report_leaks();
    return {};
  });
}

uint64_t mutation_count() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.mutations.count();
}

int mutation(uint64_t index, kv_simt_mutation* out) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    KV_ASSIGN_OR_RETURN(const kv_simt_mutation found, runtime.mutations.at(index));
    return copy_out(found, out);
  });
}

int mutate(const kv_simt_mutation* mutation) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    runtime.timeline.complete_all();
    if (!mutation) return runtime.mutations.set(nullptr);
    kv_simt_mutation whole = {};
    std::memcpy(&whole, mutation, std::min<size_t>(mutation->struct_bytes, sizeof whole));
    return runtime.mutations.set(&whole);
  });
}

int clear_executions() {
  return locked([](Runtime& runtime) -> kv::Result<void> {
    runtime.device.clear_executions();
    runtime.profiler.forget_executions();
    return {};
  });
}

int set_edge_counters(uint8_t* counters, uint64_t count) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!counters && count) return kv::bad_input("set_edge_counters: the counters are null");
    runtime.device.set_edge_counters({counters, size_t(count)});
    return {};
  });
}

int write_profile(const char* path) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!path) return kv::bad_input("write_profile: the path is a null pointer");
    runtime.timeline.complete_all();
    return runtime.profiler.write_profile(path);
  });
}

int write_lcov(const char* path) {
  return locked([&](Runtime& runtime) -> kv::Result<void> {
    if (!path) return kv::bad_input("write_lcov: the path is a null pointer");
    runtime.timeline.complete_all();
    return runtime.profiler.write_lcov(path);
  });
}

constexpr kv_simt_control_v1 kTable = {
    .version = KV_SIMT_CONTROL_VERSION,
    .struct_bytes = sizeof(kv_simt_control_v1),
    .last_error = last_control_error,
    .get_config = get_config,
    .configure = configure,
    .reset = reset,
    .synchronize = synchronize,
    .finding_count = finding_count,
    .finding_kept = finding_kept,
    .finding = finding,
    .clear_findings = clear_findings,
    .counters = counters,
    .clear_counters = clear_counters,
    .set_access = set_access,
    .set_undefined = set_undefined,
    .set_defined = set_defined,
    .check_leaks = check_leaks,
    .mutation_count = mutation_count,
    .mutation = mutation,
    .mutate = mutate,
    .clear_executions = clear_executions,
    .set_edge_counters = set_edge_counters,
    .write_profile = write_profile,
    .write_lcov = write_lcov,
    .first_undefined = first_undefined,
    .report_undefined = report_undefined,
};

}  // namespace

const kv_simt_control_v1* kv_simt_control(uint32_t version) {
  return version == KV_SIMT_CONTROL_VERSION ? &kTable : nullptr;
}
