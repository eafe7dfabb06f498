// Purpose: an engine-level plugin in this process.
// Contract: for our own engines only: one is trusted not to crash, and needs no CUDA runtime.
// Example:  const kv_engine_level* level = props::load_engine(path);
#pragma once

#include <dlfcn.h>

#include <string>

#include "harness/plugin/kverify_engine.h"

namespace kv::props {

/// nullptr when it cannot be loaded or offers no engine level. Never unloaded.
inline const kv_engine_level* load_engine(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  const auto entry = reinterpret_cast<const kv_plugin* (*)()>(dlsym(handle, "kverify_plugin_v1"));
  return entry == nullptr ? nullptr : entry()->engine;
}

}  // namespace kv::props
