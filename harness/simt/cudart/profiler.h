// Purpose: counts each launch apart, for KV_SIMT_COLLECT_LAUNCHES; profiles and tracefiles.
// Contract: begin() and end() around the execution of a launch. Keeps the first kLaunchesMax.
// Example:  profiler.begin(); device.launch(spec); profiler.end(launch);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/device.h"
#include "harness/simt/profile/launch_profile.h"
#include "harness/simt/profile/lcov.h"

namespace kv::simt::cudart {

class Profiler {
 public:
  static constexpr size_t kLaunchesMax = size_t{1} << 20;

  explicit Profiler(Device& device) : device_(device) {}

  void begin();
  void end(const LaunchSpec& spec, const KernelInfo& info);
  void loaded(LoadedModule* module) { modules_.push_back(module); }
  /// The module is about to go away: what ran of it stays known.
  void unloaded(LoadedModule* module);
  void forget_launches() { launches_.clear(); }
  void forget_executions();

  Result<void> write_profile(const std::string& path) const;
  Result<void> write_lcov(const std::string& path) const;

 private:
  bool active() const { return device_.config().collect & KV_SIMT_COLLECT_LAUNCHES; }
  void count_classes(const LoadedModule& module, profile::LaunchProfile* launch);
  void cover(const LoadedModule& module, profile::LineCoverage* coverage) const;

  Device& device_;
  kv_simt_counters before_ = {};
  std::vector<LoadedModule*> modules_;
  std::vector<profile::LaunchProfile> launches_;
  profile::LineCoverage gone_;                                    // of modules that were unloaded
  std::map<const LoadedModule*, std::vector<uint64_t>> counted_;  // executions so far
};

}  // namespace kv::simt::cudart
