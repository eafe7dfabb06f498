#include "harness/simt/device.h"

#include <sys/mman.h>

#include <cstring>

#include "harness/simt/exec/device_state.h"

namespace kv::simt {
namespace {

constexpr uint32_t kFindingsMax = 64;
constexpr uint64_t kMemoryBytes = uint64_t{8} << 30;

/// Most shared memory of one block, in bytes (CUDA C Programming Guide, compute capabilities).
uint32_t shared_max(uint32_t model_sm) {
  return model_sm >= 90 ? 227 << 10 : model_sm == 89 ? 99 << 10 : 163 << 10;
}

}  // namespace

kv_simt_config default_config() {
  kv_simt_config c = {};
  c.struct_bytes = sizeof c;
  c.checks = KV_SIMT_CHECK_ALL;
  c.model_sm = 80;
  return c;
}

Result<void> Device::available() { return AddressSpace::reserve(); }

Device& Device::instance() {
  static Device device;
  return device;
}

Device::Device() : state_(std::make_unique<State>()) {
  state_->counters.struct_bytes = sizeof(kv_simt_counters);
  auto workspace = state_->space.add_symbol(64, 64, false, "(workspace of the grid's barrier)");
  KV_CHECK(workspace.ok(), "no room for the workspace of grids");
  state_->workspace = *workspace;
}
Device::~Device() = default;

Result<void> Device::configure(const kv_simt_config& config) {
  if (config.model_sm != 80 && config.model_sm != 89 && config.model_sm != 90) {
    return bad_input("model_sm is " + std::to_string(config.model_sm) + "; known: 80, 89, 90");
  }
  if (config.rounding > KV_SIMT_ROUNDING_MMA_HOPPER) {
    return bad_input("rounding is " + std::to_string(config.rounding) + "; known: 0 to 5");
  }
  if (config.checks & ~uint32_t{KV_SIMT_CHECK_ALL}) {
    return bad_input("checks has unknown bits: " + hex(config.checks));
  }
  State& s = *state_;
  s.config = config;
  s.config.struct_bytes = sizeof config;
  s.allocations_left = config.fail_allocation;
  s.space.set_limit(config.memory_bytes ? config.memory_bytes : kMemoryBytes);
  s.log.set_max(config.findings_max ? config.findings_max : kFindingsMax);
  return {};
}

const kv_simt_config& Device::config() const { return state_->config; }

void Device::reset() {
  State& s = *state_;
  s.space.reset();
  for (auto& module : s.modules) initialise_variables(*module);
  s.log.clear();
  clear_counters();
  s.launches = 0;
  s.allocations_left = s.config.fail_allocation;
  s.streams.set_order({});
  s.streams.forget();
  s.undefined_copies.clear();
}

void Device::set_deadline(std::chrono::steady_clock::time_point at) { state_->deadline = at; }

void Device::set_order(WorkOrder order) { state_->streams.set_order(std::move(order)); }

// --- memory

Result<LoadedModule*> Device::load_module(std::string ptx_text) {
  State& s = *state_;
  KV_ASSIGN_OR_RETURN(auto module, make_module(std::move(ptx_text), s.space, &s.kernels));
  s.modules.push_back(std::move(module));
  return s.modules.back().get();
}

void Device::unload_module(LoadedModule* module) {
  State& s = *state_;
  const auto found = std::find_if(s.modules.begin(), s.modules.end(),
                                  [&](const auto& m) { return m.get() == module; });
  KV_CHECK(found != s.modules.end(), "unload of a module that is not loaded");
  for (Extent* extent : module->variables) {
    if (extent) s.space.release_symbol(*extent);
  }
  s.modules.erase(found);
}

// --- launches

void Device::State::fill_launch(const LaunchSpec& spec, Kernel& kernel, LaunchState* launch,
                                LaunchCold* cold) {
  const uint64_t blocks = uint64_t{spec.grid.x} * spec.grid.y * spec.grid.z;
  Program& p = *kernel.program;
  hints.assign(p.hints, nullptr);
  parameters.assign(spec.parameters.begin(), spec.parameters.end());
  cold->program = &p;
  cold->program_id = kernel.id;
  cold->log = &log;
  cold->space = &space;
  cold->config = config;
  cold->deadline = deadline;
  cold->number = launches;
  cold->unique = ++unique;
  cold->grid = spec.grid;
  cold->block = spec.block;
  cold->dynamic_shared_bytes = spec.dynamic_shared_bytes;
  cold->workspace = workspace->base;
  std::memset(reinterpret_cast<void*>(workspace->base), 0, workspace->bytes);
  launch->hints = hints.data();
  launch->checks = config.checks;
  launch->rounding = config.rounding;
  launch->rounding_seed = config.rounding_seed;
  launch->check_undefined = config.checks & KV_SIMT_CHECK_UNDEFINED;
  launch->check_shared_race = config.checks & KV_SIMT_CHECK_BLOCK_RACE;
  launch->check_global_race = (config.checks & KV_SIMT_CHECK_GRID_RACE) && blocks > 1;
  launch->shared_shift = uint8_t(p.shared_granule_shift);
  launch->shared_chunks = p.shared_chunks;
  launch->global_shift = uint8_t(p.global_granule_shift);
  launch->parameters = parameters.data();
  launch->parameter_bytes = uint32_t(parameters.size());
  cold->executions = kernel.module->executions.data();
  cold->edges = edges.data();
  cold->edge_count = edges.size();
  launch->counters = &counters;
  launch->matrix_memo = &matrix_memo;
  launch->cold = cold;
  if (launch->check_global_race) make_room_for_clocks();
  launch->global_floor = BlockStamp::floor(race_clock);
  cold->clock_max = race_clock + 1;
}

uint32_t Device::State::probes_for(const Kernel& kernel) const {
  uint32_t bits = 0;
  if (config.collect & KV_SIMT_COLLECT_EXECUTIONS) bits |= probe_bits::kExecutions;
  if (config.collect & KV_SIMT_COLLECT_MEMORY) bits |= probe_bits::kMemory;
  if (config.collect & KV_SIMT_COLLECT_VALUES) bits |= probe_bits::kDigest;
  if (!edges.empty()) bits |= probe_bits::kEdges;
  if (kernel.module->watched) bits |= probe_bits::kWatched;
  LoadedModule& module = *kernel.module;
  if ((bits & probe_bits::kExecutions) && module.executions.empty()) {
    module.executions.resize(module.instructions);
  }
  return bits;
}

void Device::State::report_unsupported(const Kernel& kernel, const Error& error) {
  kv_simt_finding f = unsupported_finding(kernel.function->name, kernel.culprit, error.message);
  f.launch = launches;
  log.add(f);
}

Result<LaunchStatus> Device::launch(const LaunchSpec& spec) {
  State& s = *state_;
  Kernel& kernel = *spec.kernel;
  const std::string& name = kernel.function->name;
  KV_RETURN_IF_ERROR(check_shape(spec, *kernel.function));
  const Result<Program*> program = program_of(kernel, s.probes_for(kernel));
  ++s.launches;
  if (!program.ok()) {
    if (program.error().kind != ErrorKind::kUnsupported) return program.error();
    s.report_unsupported(kernel, program.error());
    return LaunchStatus::kUnsupported;
  }
  const Program& p = **program;
  const uint64_t shared = spec.dynamic_shared_bytes
                              ? uint64_t{p.dynamic_shared_offset} + spec.dynamic_shared_bytes
                              : p.static_shared_bytes;
  if (shared > shared_max(s.config.model_sm)) {
    return bad_input("kernel " + name + ": " + std::to_string(shared) +
                     " bytes of shared memory; sm_" + std::to_string(s.config.model_sm) + " has " +
                     std::to_string(shared_max(s.config.model_sm)) + " for a block");
  }
  LaunchState launch;
  LaunchCold cold;
  s.fill_launch(spec, kernel, &launch, &cold);
  s.track(&launch, &cold);
  ++s.counters.launches;
  const LaunchStatus status = run_grid(launch, uint32_t(shared), spec.cooperative, s.places);
  if (s.streams.tracked() && launch.check_global_race) {
    s.streams.ran(s.race_clock + 1, cold.clock_max,
                  "launch " + std::to_string(s.launches) + " (" + p.demangled + ")");
  }
  if (launch.check_global_race) s.race_clock = cold.clock_max;
  return status;
}

// --- findings and counters

uint64_t Device::finding_count() const { return state_->log.count(); }
const std::vector<kv_simt_finding>& Device::findings() const { return state_->log.kept(); }
void Device::clear_findings() { state_->log.clear(); }
void Device::clear_executions() {
  for (auto& module : state_->modules) module->executions.clear();
}
void Device::set_edge_counters(std::span<uint8_t> counters) { state_->edges = counters; }
void Device::add_finding(const kv_simt_finding& finding) { state_->log.add(finding); }
kv_simt_counters Device::counters() const { return state_->counters; }
void Device::clear_counters() {
  state_->counters = {};
  state_->counters.struct_bytes = sizeof(kv_simt_counters);
}

}  // namespace kv::simt
