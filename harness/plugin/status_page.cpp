#include "harness/plugin/status_page.h"

#include <array>
#include <cstddef>

namespace kv {

const char* phase_name(uint32_t phase) {
  constexpr std::array kNames = {"start-up",
                                 "loading the plugin",
                                 "waiting for a case",
                                 "preparing a case",
                                 "supports",
                                 "plan",
                                 "append",
                                 "attend",
                                 "device synchronisation",
                                 "reading results back",
                                 "merge"};
  static_assert(kNames.size() == static_cast<size_t>(Phase::kMerge) + 1);
  return phase < kNames.size() ? kNames[phase] : "an unknown place";
}

}  // namespace kv
