// Purpose: findings that somebody has looked at and accepts, with the reason.
// Contract: a text file; each line is `kind file:line reason`, with the kind as reports print it
// and blanks as '-', or '*' for any. The file matches by the end of its path, whole names only; a
// finding inlined elsewhere matches at either place. '#' begins a comment. A line without a reason
// is refused.
// Example:  race-of-equal-values  stencil.cu:12  every thread writes the same flag
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct SourcePlace {
  std::string file;
  uint64_t line = 0;
};

struct Suppression {
  std::string kind;
  SourcePlace place;
  std::string reason;
};

Result<std::vector<Suppression>> read_suppressions(const std::string& path);
/// The first that matches, or null. `kind` with blanks or '-'.
const Suppression* find_suppression(std::span<const Suppression> list, const std::string& kind,
                                    std::span<const SourcePlace> places);

}  // namespace kv
