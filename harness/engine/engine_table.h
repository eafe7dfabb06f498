// Purpose: what a plugin's table of the engine level offers of what it may leave out.
// Contract: a function at the table's end is offered when struct_bytes reaches behind it and it is
// not NULL; nothing behind struct_bytes is read.
// Example:  if (offers(level, &kv_engine_level::read_slots)) level.read_slots(...);
#pragma once

#include <cstddef>
#include <string>

#include "harness/case/case.h"
#include "harness/plugin/kverify_engine.h"

namespace kv {

template <class Function>
bool offers(const kv_engine_level& level, Function kv_engine_level::*function) {
  const auto* begin = reinterpret_cast<const std::byte*>(&level);
  const auto* end = reinterpret_cast<const std::byte*>(&(level.*function) + 1);
  return end - begin <= static_cast<ptrdiff_t>(level.struct_bytes) && level.*function != nullptr;
}

/// What no history can be judged without, or "".
inline std::string find_missing(const kv_engine_level& level, const Case& c) {
  if (!offers(level, &kv_engine_level::snapshot)) return "snapshot";
  if (!offers(level, &kv_engine_level::read_slot) && !offers(level, &kv_engine_level::read_slots))
    return "read_slot";
  const bool by_page = offers(level, &kv_engine_level::read_page) ||
                       offers(level, &kv_engine_level::read_page_slots);
  return c.engine->prefix_cache && !by_page ? "read_page" : "";
}

}  // namespace kv
