#include "harness/simt/cudart/profiler.h"

#include <cstdio>

#include "harness/simt/cudart/errors.h"

namespace kv::simt::cudart {
namespace {

Result<void> write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !written) return bad_input("cannot write " + path);
  return {};
}

void put(uint32_t (&to)[3], const Dim3& from) {
  to[0] = from.x;
  to[1] = from.y;
  to[2] = from.z;
}

}  // namespace

void Profiler::begin() {
  if (active()) before_ = device_.counters();
}

void Profiler::end(const LaunchSpec& spec, const KernelInfo& info) {
  if (!active() || launches_.size() == kLaunchesMax) return;
  profile::LaunchProfile& launch = launches_.emplace_back();
  launch.number = launches_.size();
  launch.kernel = demangled(info.name);
  put(launch.grid, spec.grid);
  put(launch.block, spec.block);
  launch.counters = profile::difference(device_.counters(), before_);
  launch.counters.shared_bytes_peak = spec.dynamic_shared_bytes
                                          ? info.dynamic_shared_offset + spec.dynamic_shared_bytes
                                          : info.static_shared_bytes;
  count_classes(device_.module_of(*spec.kernel), &launch);
}

void Profiler::count_classes(const LoadedModule& module, profile::LaunchProfile* launch) {
  const ptx::Module& ptx = device_.ptx_of(module);
  std::vector<uint64_t>& counted = counted_[&module];
  size_t number = 0;
  for (uint32_t f = 0; f < ptx.functions.size(); ++f) {
    const auto& code = ptx.functions[f].code;
    counted.resize(std::max(counted.size(), number + code.size()));
    for (uint32_t k = 0; k < code.size(); ++k, ++number) {
      const uint64_t now = device_.executions(module, {.function = f, .instruction = k});
      const uint64_t fresh = now - counted[number];
      counted[number] = now;
      if (fresh) launch->instructions[uint32_t(profile::class_of(code[k]))] += fresh;
    }
  }
}

void Profiler::forget_executions() {
  counted_.clear();
  gone_ = {};
}

void Profiler::cover(const LoadedModule& module, profile::LineCoverage* coverage) const {
  coverage->add(device_.ptx_of(module), [&](uint32_t function, uint32_t instruction) {
    return device_.executions(module, {.function = function, .instruction = instruction});
  });
}

void Profiler::unloaded(LoadedModule* module) {
  cover(*module, &gone_);
  counted_.erase(module);
  std::erase(modules_, module);
}

Result<void> Profiler::write_profile(const std::string& path) const {
  return write_file(path, profile::profile_json(launches_));
}

Result<void> Profiler::write_lcov(const std::string& path) const {
  profile::LineCoverage coverage = gone_;
  for (const LoadedModule* module : modules_) cover(*module, &coverage);
  return write_file(path, coverage.lcov());
}

}  // namespace kv::simt::cudart
