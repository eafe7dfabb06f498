// Purpose: a plugin, loaded and found lawful.
// Contract: load_plugin() is called after load_runtime(), in a worker process: it runs foreign code
// (constructors, kverify_plugin_v1), which may crash. What is not a plugin gives one error (bad
// input): an unreadable or truncated file, a missing symbol, another ABI, a struct that is too
// short, a missing function, a string without an end, a CUDA runtime other than ours (of another
// version, or linked statically). The plugin is never unloaded.
// Example: auto plugin = load_plugin("libkvattn_plugin.so", *runtime);
//          plugin->api->kernel->supports(&shape, &why);
#pragma once

#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/plugin/elf.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/plugin/runtime.h"

namespace kv {

struct LoadedPlugin {
  const kv_plugin* api = nullptr;
  std::string name, version;          // printable
  std::vector<std::string> variants;  // printable
};

/// The level's merge, or NULL when the plugin does not offer it, or was built before there was one.
using MergeFunction = kv_status (*)(const kv_merge_args*, kv_error*);
MergeFunction merge_of(const kv_kernel_level& level);
/// Whether the plugin was built when V could lie in K's memory; an older one would not look whether
/// it does.
bool knows_value_in_key(const kv_kernel_level& level);
/// Whether attend may be captured into a graph.
bool promises_graphs(const kv_plugin& plugin);

Result<LoadedPlugin> load_plugin(const std::string& path, const CudaRuntime& runtime);

/// Refuses an object with device code that uses a CUDA runtime other than the one that kverify can
/// replace; says what to do.
Result<void> check_runtime_of(const std::string& path, const ElfFacts& facts);

/// The same for a program of its own, which may also have been built with CUDA 12: the name of the
/// runtime library that it wants, "" when it needs none.
Result<std::string> runtime_of_program(const std::string& path, const ElfFacts& facts);

/// The part of load_plugin() that looks only at what kverify_plugin_v1() returned.
Result<LoadedPlugin> check_plugin(const kv_plugin* api);

}  // namespace kv
