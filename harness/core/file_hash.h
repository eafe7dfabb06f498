// Purpose: the hash of a file, to tell one build of a program or plugin from another.
// Contract: XXH3 with 64 bits over all bytes (hash.h), sixteen hexadecimal digits; an error of the
// environment when the file cannot be read.
#pragma once

#include <string>

#include "harness/core/result.h"

namespace kv {

Result<std::string> hash_of_file(const std::string& path);

}  // namespace kv
