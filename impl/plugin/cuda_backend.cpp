// Compiled twice, as impl/plugin.cpp.
#include "impl/plugin/engine_level.h"
#include "kvattn/cuda_store.h"

namespace kvattn {
namespace {
#ifdef KVATTN_BATCH_INVARIANT
constexpr bool kBatchInvariant = true;
#else
constexpr bool kBatchInvariant = false;
#endif
}  // namespace

Status check_backend(const StoreSize& size, const AttentionShape& shape) {
  return check_cuda_store(size, shape);
}

// The legacy stream: created by nobody, and lives as long as the process.
StatusOr<std::unique_ptr<Store>> make_backend(const StoreSize& size, const AttentionShape& shape,
                                              const HeadInputs& heads) {
  return make_cuda_store(size, shape, {.batch_invariant = kBatchInvariant, .heads = heads});
}

}  // namespace kvattn
