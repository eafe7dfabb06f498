#include "reference/stored.h"

#include <cmath>
#include <utility>

#include "harness/core/check.h"

namespace kv::reference {
namespace {

constexpr double kUnit32 = 0x1p-24;

double rounded(DType type, double x) { return decode(type, encode_saturating(type, x)); }

}  // namespace

StoredRange admissible_store(const StoredElement& e) {
  double low = e.value - e.error, high = e.value + e.error;
  if (e.scale) {
    KV_CHECK(std::isfinite(*e.scale) && *e.scale != 0, "a scale is finite and not 0");
    low /= double{*e.scale};
    high /= double{*e.scale};
    if (low > high) std::swap(low, high);
    // Reciprocal, product, and the roundings of these divisions.
    low -= std::fabs(low) * (3.001 * kUnit32) + 0x1p-149;
    high += std::fabs(high) * (3.001 * kUnit32) + 0x1p-149;
  }
  StoredRange range{rounded(e.dtype, low), rounded(e.dtype, high)};
  if (e.dtype == DType::kI8 && low <= -127.5) range.low = -128;
  return range;
}

}  // namespace kv::reference
