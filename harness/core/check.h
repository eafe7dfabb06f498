// Purpose: a programmer's error ends the program at once, in every build type.
// Contract: KV_CHECK(condition, message) evaluates `message` only when the condition is false.
#pragma once

#include <string>

namespace kv {

/// Prints file, line, condition and message to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace kv

#define KV_CHECK(condition, message)                                 \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::kv::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
