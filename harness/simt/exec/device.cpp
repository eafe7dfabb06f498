#include "harness/simt/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "harness/simt/exec/launch.h"
#include "harness/simt/exec/module_state.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {
namespace {

constexpr uint32_t kFindingsMax = 64;
constexpr size_t kUndefinedCopiesMax = 256;
constexpr uint64_t kMemoryBytes = uint64_t{8} << 30;

kv_simt_config default_config() {
  kv_simt_config c = {};
  c.struct_bytes = sizeof c;
  c.checks = KV_SIMT_CHECK_ALL;
  c.model_sm = 80;
  return c;
}

/// Most shared memory of one block, in bytes (CUDA C Programming Guide, compute capabilities).
uint32_t shared_max(uint32_t model_sm) {
  return model_sm >= 90 ? 227 << 10 : model_sm == 89 ? 99 << 10 : 163 << 10;
}

}  // namespace

struct Device::State {
  AddressSpace& space = AddressSpace::instance();
  FindingLog log;
  kv_simt_config config = default_config();
  kv_simt_counters counters = {};
  std::vector<std::unique_ptr<LoadedModule>> modules;
  BlockPlaces places;
  std::vector<Extent*> hints;
  std::vector<uint8_t> parameters;
  MatrixMemo matrix_memo;
  Extent* workspace = nullptr;  // of grid-wide barriers
  uint64_t launches = 0, kernels = 0, unique = 0, allocations_left = 0;
  std::span<uint8_t> edges;  // of the caller
  uint32_t race_clock = 0;   // of blocks: everything up to it is older than the next launch
  StreamRaces streams;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Copies of undefined bytes from device to device, the latest last: the origin of what they
  /// left.
  struct UndefinedCopy {
    uint64_t to = 0, from = 0, bytes = 0;
  };
  std::deque<UndefinedCopy> undefined_copies;

  void note_undefined_copy(const UndefinedCopy& copy) {
    if (undefined_copies.size() == kUndefinedCopiesMax) undefined_copies.pop_front();
    undefined_copies.push_back(copy);
  }
  /// Why the undefined byte at `address` is undefined, as far as that is known.
  std::string origin_of(uint64_t address);

  void api_finding(const std::string& message, uint64_t address = 0, uint64_t bytes = 0) {
    kv_simt_finding f = {};
    f.kind = KV_SIMT_KIND_API;
    f.address = address;
    f.access_bytes = uint32_t(std::min<uint64_t>(bytes, UINT32_MAX));
    if (address) name_allocation(&f);
    copy_text(f.message, message);
    log.add(f);
  }

  /// The allocation nearest to the finding's address.
  void name_allocation(kv_simt_finding* f) {
    const Extent* const e = space.nearest(f->address);
    if (!e) return;
    f->allocation_base = e->base;
    f->allocation_bytes = e->bytes;
    f->allocation_number = space.number(*e);
  }

  /// The live extent that holds the whole range, or an error and a finding.
  Result<Extent*> whole(uint64_t address, uint64_t bytes, const char* what) {
    Extent* const e = space.find(address);
    if (e && e->live() && e->holds(address, bytes)) return e;
    const std::string message =
        std::string(what) + " of " + std::to_string(bytes) + " bytes at " + hex(address) +
        " is not inside one live allocation: " + extent_name(space, address);
    api_finding(message, address, bytes);
    return bad_input(message);
  }

  void make_room_for_clocks() {
    if (race_clock + BlockStamp::kPublishMax + 2 > BlockStamp::kClockMax) {
      const uint64_t bytes = (layout::kEnd - layout::kHeapBase) * 4;
      madvise(reinterpret_cast<void*>(layout::kWriterBase), bytes, MADV_DONTNEED);
      madvise(reinterpret_cast<void*>(layout::kReaderBase), bytes, MADV_DONTNEED);
      race_clock = 0;
      streams.forget();
    }
  }

  /// A launch that other work may overlap leaves stamps that can be compared with those of any.
  void track(LaunchState* launch, LaunchCold* cold) {
    if (!streams.tracked() || !(config.checks & KV_SIMT_CHECK_RACE)) return;
    make_room_for_clocks();
    launch->check_global_race = true;
    launch->global_shift = 0;
    launch->global_floor = BlockStamp::floor(race_clock);
    cold->clock_max = race_clock + 1;
    cold->unordered = streams.unordered();
    launch->check_stream_race = !cold->unordered.empty();
  }
  /// A copy or fill of the work that runs now touches device memory.
  void track(const TouchedRange& range) {
    if (!streams.tracked() || !(config.checks & KV_SIMT_CHECK_RACE)) return;
    make_room_for_clocks();
    streams.touch(range, ++race_clock, space, log);
  }

  uint32_t probes_for(const Kernel& kernel) const;
  void fill_launch(const LaunchSpec& spec, Kernel& kernel, LaunchState* launch, LaunchCold* cold);
  void report_unsupported(const Kernel& kernel, const Error& error);
};

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

Result<uint64_t> Device::allocate(uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return uint64_t{0};
  if (s.allocations_left != 0 && --s.allocations_left == 0) {
    return bad_input("out of device memory: this allocation was told to fail");
  }
  KV_ASSIGN_OR_RETURN(Extent * extent, s.space.allocate(bytes));
  return extent->base;
}

Result<void> Device::free(uint64_t address) {
  State& s = *state_;
  if (address == 0) return {};
  Extent* const e = s.space.find(address);
  if (!e || e->base != address || s.space.number(*e) == 0) {
    const std::string message = "free of " + hex(address) +
                                ", which no allocation starts at: " + extent_name(s.space, address);
    s.api_finding(message, address);
    return bad_input(message);
  }
  if (!e->live()) {
    const std::string message =
        "double free of " + hex(address) + ": " + extent_name(s.space, address);
    s.api_finding(message, address);
    return bad_input(message);
  }
  return s.space.free(*e);
}

bool Device::is_device_address(uint64_t address) const {
  return address >= layout::kHeapBase && address < layout::kEnd;
}

Result<void> Device::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return {};
  Extent *target = nullptr, *source = nullptr;
  if (is_device_address(from)) {
    KV_ASSIGN_OR_RETURN(source, s.whole(from, bytes, "a copy's source"));
  }
  if (is_device_address(to)) {
    KV_ASSIGN_OR_RETURN(target, s.whole(to, bytes, "a copy's destination"));
  }
  if ((source && !s.space.touch(*source, from, bytes)) ||
      (target && !s.space.touch(*target, to, bytes))) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  if (source) s.track({.what = "a copy", .address = from, .bytes = bytes});
  if (target) s.track({.what = "a copy", .address = to, .bytes = bytes, .write = true});
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  if (!target) return {};
  if (!source || (source->flags & Extent::kDefined)) {
    s.space.set_defined(*target, to, bytes, true);
    return {};
  }
  if (!s.space.defined(*source, from, bytes)) {
    target->flags &= ~uint32_t{Extent::kDefined};
    s.note_undefined_copy({.to = to, .from = from, .bytes = bytes});
  }
  bits::copy(AddressSpace::bits(), AddressSpace::bit(to), AddressSpace::bits(),
             AddressSpace::bit(from), bytes);
  return {};
}

Result<void> Device::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "a fill"));
  if (!s.space.touch(*extent, address, bytes)) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  s.track({.what = "a fill", .address = address, .bytes = bytes, .write = true});
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  s.space.set_defined(*extent, address, bytes, true);
  return {};
}

Result<void> Device::set_access(uint64_t address, uint64_t bytes, uint32_t access) {
  if (access != KV_SIMT_ACCESS_NONE && access != KV_SIMT_ACCESS_READ &&
      access != KV_SIMT_ACCESS_READ_WRITE) {
    return bad_input("access is " + std::to_string(access) + "; known: 0, 1, 3");
  }
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, state_->whole(address, bytes, "set_access"));
  state_->space.set_access(*extent, address, bytes, access);
  return {};
}

Result<void> Device::set_defined(uint64_t address, uint64_t bytes, bool defined) {
  State& s = *state_;
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "set_defined"));
  if (!s.space.touch(*extent, address, bytes)) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  s.space.set_defined(*extent, address, bytes, defined);
  return {};
}

Result<Device::UndefinedRun> Device::first_undefined(uint64_t address, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return UndefinedRun{};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "first_undefined"));
  const uint64_t offset = s.space.first(*extent, address, bytes, false);
  if (offset == bytes) return UndefinedRun{};
  return UndefinedRun{offset, s.space.first(*extent, address + offset, bytes - offset, true)};
}

std::string Device::State::origin_of(uint64_t address) {
  const auto copy = std::find_if(undefined_copies.rbegin(), undefined_copies.rend(),
                                 [&](const UndefinedCopy& c) { return address - c.to < c.bytes; });
  if (copy == undefined_copies.rend())
    return "nobody has written it, or what was stored there was undefined";
  const uint64_t from = copy->from + (address - copy->to);
  return "it was copied from " + hex(from) + ", " + extent_name(space, from) +
         ", where nobody had written it";
}

Result<void> Device::report_undefined(uint64_t address, uint64_t bytes, std::string_view what) {
  State& s = *state_;
  KV_ASSIGN_OR_RETURN(const UndefinedRun run, first_undefined(address, bytes));
  if (run.bytes == 0 || !(s.config.checks & KV_SIMT_CHECK_UNDEFINED)) return {};
  const uint64_t at = address + run.offset;
  kv_simt_finding f = {};
  f.kind = KV_SIMT_KIND_UNDEFINED;
  f.address = at;
  f.access_bytes = uint32_t(std::min<uint64_t>(run.bytes, UINT32_MAX));
  s.name_allocation(&f);
  copy_text(f.message, std::string(what) + ": " + std::to_string(run.bytes) +
                           " undefined bytes at " + hex(at) + " (" + extent_name(s.space, at) +
                           "); " + s.origin_of(at));
  s.log.add(f);
  return {};
}

// --- modules

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
