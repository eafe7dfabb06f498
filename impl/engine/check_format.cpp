// What of a cache's format is lawful, and what is offered.
#include "kvattn/cache_format.h"

namespace kvattn {
namespace {

constexpr double kThetaMax = 1e12;

Status check_rope(const Rope& rope, int64_t head_dim) {
  const bool turns = rope.pairing != Rope::Pairing::kNone;
  if (rope.pairing > Rope::Pairing::kInterleaved) {
    return refused("shape: expected a RoPE pairing of 0 to 2, got ",
                   static_cast<int>(rope.pairing));
  }
  if (rope.dims < 0 || rope.dims % 2 != 0 || rope.dims > head_dim || turns != (rope.dims > 0)) {
    return refused("shape: expected RoPE of an even number of dimensions up to ", head_dim,
                   ", 0 exactly without a pairing, got ", rope.dims);
  }
  if (turns && !(rope.theta >= 1 && rope.theta <= kThetaMax)) {
    return refused("shape: expected a RoPE theta of 1 to ", kThetaMax, ", got ", rope.theta);
  }
  return {};
}

}  // namespace

Status check_format(const CacheFormat& f) {
  const bool is_codes = is_code(f.stored);
  if (!is_codes && f.stored != f.given) {
    return unsupported("shape: expected a cache of ", dtype_name(f.given),
                       " or of 8-bit codes (e4m3, e5m2, int8), got ", dtype_name(f.stored));
  }
  if (f.scales > ScaleGranularity::kPage) {
    return refused("shape: expected scales 0 to 4, got ", static_cast<int>(f.scales));
  }
  if (!is_codes && f.scales != ScaleGranularity::kNone) {
    return unsupported("shape: scales are offered for 8-bit codes, got them for ",
                       dtype_name(f.stored));
  }
  return check_rope(f.rope, f.head_dim);
}

}  // namespace kvattn
