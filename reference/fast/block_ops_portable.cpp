#include <cstdlib>
#include <string_view>

#include "reference/fast/block_ops_impl.h"

namespace kv::reference {

const BlockOps kPortableOps{"portable", decode,        scores,    score_sizes,
                            weights,    round_weights, accumulate};

const BlockOps& block_ops() {
  static const BlockOps& chosen = [&]() -> const BlockOps& {
    const char* wish = std::getenv("KVERIFY_CPU");
    const bool portable = wish != nullptr && std::string_view(wish) == "portable";
    const BlockOps* fast = avx2_ops();
    return portable || fast == nullptr ? kPortableOps : *fast;
  }();
  return chosen;
}

}  // namespace kv::reference
