#include "impl/plugin/engine_level.h"
#include "kvattn/cuda_store.h"

namespace kvattn {

Status check_backend(const StoreSize& size, const AttentionShape& shape) {
  return check_cuda_store(size, shape);
}

// The legacy stream: created by nobody, and lives as long as the process.
StatusOr<std::unique_ptr<Store>> make_backend(const StoreSize& size, const AttentionShape& shape) {
  return make_cuda_store(size, shape, nullptr);
}

}  // namespace kvattn
