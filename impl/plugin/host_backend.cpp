#include "impl/plugin/engine_level.h"

namespace kvattn {

Status check_backend(const StoreSize&, const AttentionShape& shape) {
  return check_format(format_of(shape));
}

StatusOr<std::unique_ptr<Store>> make_backend(const StoreSize& size, const AttentionShape&,
                                              const HeadInputs&) {
  return make_host_store(size);
}

}  // namespace kvattn
