// Purpose: the names by which checks of the CPU device are switched on.
// Contract: "all", "none", or a comma-separated list of the names below; anything else is nothing.
// Example:  checks_named("memory,race")
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/simt/control/kv_simt_control.h"

namespace kv {

struct CheckName {
  std::string_view name;
  uint32_t bits;  // KV_SIMT_CHECK_*
};
inline constexpr CheckName kCheckNames[] = {
    {"memory", KV_SIMT_CHECK_MEMORY}, {"undefined", KV_SIMT_CHECK_UNDEFINED},
    {"race", KV_SIMT_CHECK_RACE},     {"barrier", KV_SIMT_CHECK_BARRIER},
    {"async", KV_SIMT_CHECK_ASYNC},   {"leak", KV_SIMT_CHECK_LEAK},
    {"all", KV_SIMT_CHECK_ALL},       {"none", 0},
};
inline constexpr const char* kCheckNamesExpected =
    "all, none, or a comma-separated list of memory, undefined, race, barrier, async, leak";

inline std::optional<uint32_t> checks_named(std::string_view text) {
  uint32_t bits = 0;
  for (;;) {
    const size_t comma = text.find(',');
    bool known = false;
    for (const CheckName& check : kCheckNames) {
      if (check.name != text.substr(0, comma)) continue;
      bits |= check.bits;
      known = true;
    }
    if (!known) return std::nullopt;
    if (comma == std::string_view::npos) return bits;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace kv
