#include "harness/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace kv {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: KV_CHECK(%s) failed: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace kv
