// Purpose: the version of this kverify, from CMake's project().
// Contract: the same text in --version, reports and JSON.
#pragma once

namespace kv::cli {

inline constexpr const char* kVersion = KV_VERSION;

}  // namespace kv::cli
