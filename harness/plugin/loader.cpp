#include "harness/plugin/loader.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "harness/plugin/elf.h"
#include "harness/plugin/kverify_engine.h"
#include "harness/plugin/text.h"

namespace kv {
namespace {

constexpr const char* kEntry = "kverify_plugin_v1";
constexpr const char* kSoname = "libcudart.so.13";
constexpr const char* kSoname12 = "libcudart.so.12";  // programs only, not plugins
constexpr size_t kNameBytesMax = 128, kVariantsMax = 256;

bool names_cudart(const std::string& library) { return library.starts_with("libcudart.so"); }

}  // namespace

Result<std::string> runtime_of_program(const std::string& path, const ElfFacts& facts) {
  std::string wanted;
  for (const std::string& library : facts.needed) {
    if (!names_cudart(library)) continue;
    if (library != kSoname && library != kSoname12)
      return bad_input("'" + path + "' is linked to " + library + ", kverify offers " + kSoname +
                       " and " + kSoname12 + ": rebuild it with CUDA 13 and -cudart shared");
    wanted = library;
  }
  if (facts.device_code && wanted.empty())
    return bad_input("'" + path + "' holds device code but does not need " + kSoname +
                     ": it was linked with the static CUDA runtime, which kverify cannot replace; "
                     "rebuild with -cudart shared");
  return wanted;
}

Result<void> check_runtime_of(const std::string& path, const ElfFacts& facts) {
  KV_ASSIGN_OR_RETURN(const std::string wanted, runtime_of_program(path, facts));
  if (wanted.empty() || wanted == kSoname) return {};
  return bad_input("'" + path + "' is linked to " + wanted + ", kverify offers plugins " + kSoname +
                   ": rebuild it with CUDA 13 and -cudart shared");
}

namespace {

/// Everything that is in the process now. The plugin's own dependencies are held to the same rule
/// as the plugin, and two runtimes must never coexist.
Result<void> check_loaded_objects(const CudaRuntime& runtime) {
  const link_map* ours = nullptr;
  dlinfo(runtime.handle, RTLD_DI_LINKMAP, &ours);
  const link_map* object = ours;
  while (object != nullptr && object->l_prev != nullptr) object = object->l_prev;
  for (; object != nullptr; object = object->l_next) {
    const std::string path = object->l_name == nullptr ? "" : object->l_name;
    if (path.empty() || object == ours || !std::filesystem::exists(path)) continue;
    const auto facts = inspect_elf(path);
    if (!facts.ok()) continue;  // the dynamic linker was content with it
    KV_RETURN_IF_ERROR(check_runtime_of(path, *facts));
    if (names_cudart(facts->soname) || names_cudart(std::filesystem::path(path).filename()))
      return bad_input("loading the plugin brought in a second CUDA runtime, '" + path +
                       "', beside '" + runtime.path + "': link the plugin to " + kSoname + " only");
  }
  return {};
}

Result<std::string> name_of(const char* text, const char* what) {
  if (text == nullptr) return bad_input(std::string("the plugin's ") + what + " is NULL");
  size_t bytes = 0;
  while (bytes <= kNameBytesMax && text[bytes] != '\0') ++bytes;
  if (bytes == 0 || bytes > kNameBytesMax)
    return bad_input(std::string("the plugin's ") + what + " must have 1 to " +
                     std::to_string(kNameBytesMax) + " characters and an end");
  const std::string name = printable({text, bytes});
  if (name != std::string_view(text, bytes))
    return bad_input(std::string("the plugin's ") + what + " is not printable ASCII: '" + name +
                     "'");
  return name;
}

Result<void> check_size(const char* what, uint64_t got, uint64_t want) {
  if (got >= want) return {};
  return bad_input(std::string("the plugin's ") + what + " says struct_bytes " +
                   std::to_string(got) + ", expected at least " + std::to_string(want) +
                   ": rebuild it with this kverify's kverify_plugin.h");
}

Result<void> check_convention(const char* what, uint32_t got, uint32_t last) {
  if (got <= last) return {};
  return bad_input(std::string("the plugin's conventions.") + what + " is " + std::to_string(got) +
                   ", expected 0 to " + std::to_string(last));
}

Result<void> check_conventions(const kv_conventions& c) {
  KV_RETURN_IF_ERROR(check_size("kv_conventions", c.struct_bytes, sizeof(kv_conventions)));
  KV_RETURN_IF_ERROR(check_convention("lse_base", c.lse_base, KV_LSE_BASE_2));
  KV_RETURN_IF_ERROR(check_convention("lse_layout", c.lse_layout, KV_LSE_HEAD_MAJOR));
  KV_RETURN_IF_ERROR(check_convention("empty_row_lse", c.empty_row_lse, KV_EMPTY_LSE_UNSPECIFIED));
  KV_RETURN_IF_ERROR(check_convention("pad_rows", c.pad_rows, KV_PAD_ROWS_UNSPECIFIED));
  return check_convention("promises", c.promises, 2 * KV_PROMISE_GRAPH - 1);
}

Result<void> check_kernel_level(const kv_kernel_level& level) {
  KV_RETURN_IF_ERROR(
      check_size("kv_kernel_level", level.struct_bytes, offsetof(kv_kernel_level, variants)));
  const char* missing = level.supports == nullptr ? "supports"
                        : level.plan == nullptr   ? "plan"
                        : level.append == nullptr ? "append"
                        : level.attend == nullptr ? "attend"
                                                  : nullptr;
  if (missing == nullptr) return {};
  return bad_input(std::string("the plugin's kv_kernel_level.") + missing +
                   " is NULL, expected a function");
}

Result<void> check_engine_level(const kv_engine_level& level) {
  KV_RETURN_IF_ERROR(
      check_size("kv_engine_level", level.struct_bytes, offsetof(kv_engine_level, snapshot)));
  const std::pair<const char*, bool> there[] = {{"supports", level.supports},
                                                {"create", level.create},
                                                {"destroy", level.destroy},
                                                {"admit", level.admit},
                                                {"step", level.step},
                                                {"complete", level.complete},
                                                {"fork", level.fork},
                                                {"reorder", level.reorder},
                                                {"truncate", level.truncate},
                                                {"shift", level.shift},
                                                {"cancel", level.cancel},
                                                {"finish", level.finish},
                                                {"preempt", level.preempt},
                                                {"resume", level.resume},
                                                {"evict", level.evict},
                                                {"defrag", level.defrag},
                                                {"save", level.save},
                                                {"restore", level.restore},
                                                {"fail_allocation", level.fail_allocation}};
  for (const auto& [name, is_there] : there) {
    if (is_there) continue;
    return bad_input(std::string("the plugin's kv_engine_level.") + name +
                     " is NULL, expected a function");
  }
  return {};
}

Result<std::vector<std::string>> variants_of(const kv_kernel_level& level) {
  std::vector<std::string> names;
  const size_t needed = offsetof(kv_kernel_level, variants) + sizeof level.variants;
  if (level.struct_bytes < needed || level.variants == nullptr) return names;
  while (level.variants[names.size()] != nullptr) {
    if (names.size() == kVariantsMax)
      return bad_input("the plugin's kv_kernel_level.variants has more than " +
                       std::to_string(kVariantsMax) + " names, expected NULL after the last");
    KV_ASSIGN_OR_RETURN(std::string name, name_of(level.variants[names.size()], "variant name"));
    names.push_back(std::move(name));
  }
  return names;
}

/// cuBLAS, for a plugin on the CPU device that needs it: the drop-in beside the runtime's, which
/// the plugin then finds by its name. Where it was not built the dynamic linker looks further.
void load_drop_ins(const ElfFacts& facts, const CudaRuntime& runtime) {
  constexpr const char* kCublas = "libcublas.so.13";
  if (runtime.device != DeviceKind::kCpu || std::ranges::count(facts.needed, kCublas) == 0) return;
  const auto drop_in = std::filesystem::path(runtime.path).replace_filename(kCublas);
  dlopen(drop_in.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

bool knows_value_in_key(const kv_kernel_level& level) {  // came together with merge
  return level.struct_bytes >= offsetof(kv_kernel_level, merge) + sizeof level.merge;
}

bool promises_graphs(const kv_plugin& plugin) {
  return (plugin.conventions.promises & KV_PROMISE_GRAPH) != 0;
}

MergeFunction merge_of(const kv_kernel_level& level) {
  const size_t needed = offsetof(kv_kernel_level, merge) + sizeof level.merge;
  return level.struct_bytes < needed ? nullptr : level.merge;
}

Result<LoadedPlugin> check_plugin(const kv_plugin* api) {
  if (api == nullptr) return bad_input(std::string(kEntry) + "() returned NULL");
  if (api->struct_bytes < sizeof(uint32_t) * 2)
    return check_size("kv_plugin", api->struct_bytes, sizeof(kv_plugin)).error();
  if (api->abi != KV_PLUGIN_ABI)
    return bad_input("the plugin was built for plugin ABI " + std::to_string(api->abi) +
                     ", this kverify has " + std::to_string(KV_PLUGIN_ABI) +
                     ": rebuild it with this kverify's kverify_plugin.h");
  KV_RETURN_IF_ERROR(check_size("kv_plugin", api->struct_bytes, sizeof(kv_plugin)));
  LoadedPlugin plugin{.api = api, .name = {}, .version = {}};
  KV_ASSIGN_OR_RETURN(plugin.name, name_of(api->name, "name"));
  KV_ASSIGN_OR_RETURN(plugin.version, name_of(api->version, "version"));
  KV_RETURN_IF_ERROR(check_conventions(api->conventions));
  if (api->kernel == nullptr && api->engine == nullptr)
    return bad_input("the plugin offers neither the kernel level nor the engine level");
  if (api->engine != nullptr) KV_RETURN_IF_ERROR(check_engine_level(*api->engine));
  if (api->kernel == nullptr) return plugin;
  KV_RETURN_IF_ERROR(check_kernel_level(*api->kernel));
  KV_ASSIGN_OR_RETURN(plugin.variants, variants_of(*api->kernel));
  return plugin;
}

Result<LoadedPlugin> load_plugin(const std::string& path, const CudaRuntime& runtime) {
  KV_ASSIGN_OR_RETURN(const ElfFacts facts, inspect_elf(path));
  KV_RETURN_IF_ERROR(check_runtime_of(path, facts));
  // A name without a slash would be searched for in the system's folders.
  const std::string absolute = std::filesystem::absolute(path);
  load_drop_ins(facts, runtime);
  void* handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return bad_input("the plugin cannot be loaded: " + printable(dlerror()));
  KV_RETURN_IF_ERROR(check_loaded_objects(runtime));
  const auto entry = reinterpret_cast<const kv_plugin* (*)()>(dlsym(handle, kEntry));
  if (entry == nullptr)
    return bad_input("'" + path + "' is not a plugin: it does not export " + kEntry +
                     "; see harness/plugin/kverify_plugin.h");
  return check_plugin(entry());
}

}  // namespace kv
