// Purpose: reading a file that somebody hostile may have placed.
// Contract: a regular file of at most `bytes_max` bytes, or one error. A file that grows while it
// is read is cut at the limit and refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/core/result.h"

namespace kv {

Result<std::string> read_text_file(const std::string& path, uint64_t bytes_max);

/// Atomic: readers see the old file or the whole new one, also after a crash. Follows a link to a
/// regular file; a folder, device or pipe in the way is bad input and is left alone.
Result<void> write_text_file(const std::string& path, std::string_view text);

}  // namespace kv
