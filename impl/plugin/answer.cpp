#include <algorithm>
#include <cstring>

#include "impl/plugin/engine_level.h"

namespace kvattn {

kv_status answer(const Status& status, kv_error* why) {
  if (!status.ok() && why != nullptr) {
    const size_t length = std::min(status.text().size(), sizeof why->text - 1);
    std::memcpy(why->text, status.text().data(), length);
    why->text[length] = '\0';
  }
  switch (status.code()) {
    case StatusCode::kOk:
      return KV_OK;
    case StatusCode::kRefused:
      return KV_REFUSED;
    case StatusCode::kExhausted:
      return KV_EXHAUSTED;
    case StatusCode::kUnsupported:
      return KV_UNSUPPORTED;
    case StatusCode::kFailed:
      return KV_FAILED;
  }
  return KV_FAILED;
}

}  // namespace kvattn
