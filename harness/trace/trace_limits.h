// Purpose: the bounds of a trace file, each with its reason.
// Contract: a text inside them is parsed in bounded memory; one outside is bad input.
#pragma once

#include <cstdint>

namespace kv::limits {

inline constexpr uint64_t kTraceFileBytesMax = 256u << 20;  // public hours are 1 to 3 MB
inline constexpr uint64_t kTraceRequestsMax = 1u << 20;     // a day of that service
inline constexpr uint64_t kTraceLineBytesMax = 1u << 20;    // 100,000 block ids
inline constexpr uint64_t kTraceTokensMax = 1u << 22;       // as limits::kPromptTokensMax

}  // namespace kv::limits
