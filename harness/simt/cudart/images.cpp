#include "harness/simt/cudart/images.h"

#include <algorithm>
#include <utility>

#include "harness/simt/cudart/errors.h"
#include "harness/simt/cudart/model.h"
#include "harness/simt/ptx/fatbin.h"

namespace kv::simt::cudart {
namespace {

cudaError_t image_error(const Error& error) {
  return error.kind == ErrorKind::kUnsupported ? cudaErrorNoKernelImageForDevice
                                               : cudaErrorInvalidKernelImage;
}

}  // namespace

uint64_t KernelRecord::dynamic_shared_max(const KernelInfo& info) const {
  if (dynamic_shared_chosen) return *dynamic_shared_chosen;
  return kSharedPerBlockBytes - std::min<uint64_t>(info.static_shared_bytes, kSharedPerBlockBytes);
}

Image* Images::add(const void* wrapper) {
  auto image = std::make_unique<Image>();
  image->wrapper = wrapper;
  Image* const handle = image.get();
  images_.emplace(handle, std::move(image));
  return handle;
}

void Images::add_kernel(Image* image, const void* host_function, const char* name) {
  if (!contains(image) || !host_function || !name) return;
  auto record = std::make_unique<KernelRecord>();
  record->image = image;
  record->name = name;
  auto& slot = kernels_[host_function];
  handles_.erase(slot.get());
  handles_.insert(record.get());
  slot = std::move(record);
}

void Images::add_variable(Image* image, const void* host_variable, VariableRecord record) {
  if (!contains(image) || !host_variable) return;
  record.image = image;
  variables_[host_variable] = std::move(record);
}

void Images::remove(Image* image) {
  if (!contains(image)) return;
  for (const auto& [sm, module] : image->modules) {
    mutations_.unloaded(module);
    profiler_.unloaded(module);
    device_.unload_module(module);
  }
  std::erase_if(variables_, [&](const auto& entry) { return entry.second.image == image; });
  std::erase_if(kernels_, [&](const auto& entry) {
    if (entry.second->image != image) return false;
    handles_.erase(entry.second.get());
    return true;
  });
  images_.erase(image);
}

KernelRecord* Images::find_kernel(const void* function) const {
  if (const auto found = kernels_.find(function); found != kernels_.end()) {
    return found->second.get();
  }
  const auto handle = handles_.find(function);
  if (handle == handles_.end()) return nullptr;
  return const_cast<KernelRecord*>(static_cast<const KernelRecord*>(*handle));
}

Images::ModuleResult Images::load(Image& image) {
  const uint32_t sm = device_.config().model_sm;
  if (const auto found = image.modules.find(sm); found != image.modules.end()) {
    return {.module = found->second};
  }
  const auto fail = [](cudaError_t code, const Error& error) -> ModuleResult {
    notice(error.message);
    return {.error = code, .sentence = error.message};
  };
  const auto entries = ptx::read_fatbin_wrapper(image.wrapper);
  if (!entries.ok()) return fail(image_error(entries.error()), entries.error());
  auto text = ptx::select_ptx(*entries, sm);
  if (!text.ok()) return fail(image_error(text.error()), text.error());
  const auto module = device_.load_module(std::move(*text));
  if (!module.ok()) return fail(cudaErrorInvalidPtx, module.error());
  image.modules[sm] = *module;
  mutations_.loaded(*module);
  profiler_.loaded(*module);
  return {.module = *module};
}

Images::KernelResult Images::resolve(KernelRecord& record) {
  const uint32_t sm = device_.config().model_sm;
  if (const auto found = record.resolved.find(sm); found != record.resolved.end()) {
    return {.kernel = found->second.kernel, .info = &found->second.info};
  }
  const ModuleResult module = load(*record.image);
  if (module.error != cudaSuccess) return {.error = module.error, .sentence = module.sentence};
  const auto kernel = device_.find_kernel(module.module, record.name);
  if (!kernel.ok()) {
    return {.error = cudaErrorInvalidDeviceFunction, .sentence = kernel.error().message};
  }
  auto info = device_.kernel_info(*kernel);
  if (!info.ok()) {
    notice(info.error().message);
    const bool unknown = info.error().kind == ErrorKind::kUnsupported;
    return {.error = unknown ? cudaErrorNotSupported : cudaErrorInvalidPtx,
            .sentence = info.error().message};
  }
  const auto& kept = record.resolved[sm] = {*kernel, std::move(*info)};
  return {.kernel = kept.kernel, .info = &kept.info};
}

Images::SymbolResult Images::find_symbol(const void* host_variable) {
  const auto found = variables_.find(host_variable);
  if (found == variables_.end()) {
    return {.error = cudaErrorInvalidSymbol, .sentence = "no such variable was registered"};
  }
  return find_symbol(found->second);
}

Images::SymbolResult Images::find_symbol(const VariableRecord& variable) {
  const ModuleResult module = load(*variable.image);
  if (module.error != cudaSuccess) return {.error = module.error, .sentence = module.sentence};
  const auto symbol = device_.find_symbol(module.module, variable.name);
  if (!symbol.ok()) return {.error = cudaErrorInvalidSymbol, .sentence = symbol.error().message};
  return {.address = symbol->address, .bytes = symbol->bytes};
}

void Images::place_managed(Image* image) {
  if (!contains(image)) return;
  for (auto& [host, variable] : variables_) {
    if (variable.image != image || !variable.managed) continue;
    const SymbolResult symbol = find_symbol(variable);
    if (symbol.ok()) *variable.managed = reinterpret_cast<void*>(symbol.address);
  }
}

}  // namespace kv::simt::cudart
