// Purpose: what a kind of finding is called, in reports, verdicts and suppressions.
// Contract: every KV_SIMT_KIND_* has a name of its own; verdicts and suppressions write '-' for
// blanks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "harness/simt/control/kv_simt_control.h"

namespace kv {

/// In words: "out of bounds". "unknown" for a number that is no KV_SIMT_KIND_*.
inline const char* finding_name(uint32_t kind) {
  switch (kind) {
    case KV_SIMT_KIND_OUT_OF_BOUNDS:
      return "out of bounds";
    case KV_SIMT_KIND_USE_AFTER_FREE:
      return "use after free";
    case KV_SIMT_KIND_MISALIGNED:
      return "misaligned";
    case KV_SIMT_KIND_ACCESS_RIGHTS:
      return "access rights";
    case KV_SIMT_KIND_UNDEFINED:
      return "undefined data";
    case KV_SIMT_KIND_RACE:
      return "race";
    case KV_SIMT_KIND_BARRIER:
      return "barrier";
    case KV_SIMT_KIND_ASYNC:
      return "asynchronous copy";
    case KV_SIMT_KIND_HANG:
      return "hang";
    case KV_SIMT_KIND_TRAP:
      return "trap";
    case KV_SIMT_KIND_UNSUPPORTED:
      return "unsupported";
    case KV_SIMT_KIND_LEAK:
      return "leak";
    case KV_SIMT_KIND_API:
      return "runtime misuse";
    case KV_SIMT_KIND_RACE_SAME_VALUE:
      return "race of equal values";
    default:
      return "unknown";
  }
}

/// As verdicts and suppressions write a name: "out-of-bounds".
inline std::string dashed(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '-');
  return words;
}

}  // namespace kv
