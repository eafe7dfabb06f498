#include "harness/diff/bit_changes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kv {
namespace {

/// The numbers of a type in order, the negative ones below zero: neighbours differ by 1.
int64_t place_of(DType type, uint32_t bits) {
  const uint32_t sign = 1u << (8 * dtype_bytes(type) - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -1 - magnitude : magnitude;
}

class StepComparer {
 public:
  StepComparer(const Case& c, BitChanges& changes) : shape_(c.shape), changes_(changes) {}

  bool comparable(const OpObservation& a, const OpObservation& b) const {
    if (a.status != b.status || a.layers.size() != b.layers.size()) return false;
    const size_t row = size_t{shape_.head_dim_v} * dtype_bytes(shape_.output_dtype);
    for (size_t i = 0; i < a.layers.size(); ++i) {
      const LayerResult &x = a.layers[i], &y = b.layers[i];
      if (x.lse.size() != y.lse.size() || x.output.size() != y.output.size()) return false;
      if (x.output.size() != x.lse.size() * row) return false;
    }
    return true;
  }

  void layer(const LayerResult& a, const LayerResult& b) {
    const size_t row = size_t{shape_.head_dim_v} * dtype_bytes(shape_.output_dtype);
    for (size_t r = 0; r < a.lse.size(); ++r) {
      const uint64_t changed = elements(&a.output[r * row], &b.output[r * row]);
      const bool lse = std::bit_cast<uint32_t>(a.lse[r]) != std::bit_cast<uint32_t>(b.lse[r]);
      ++changes_.rows;
      ++changes_.lse;
      changes_.lse_changed += lse;
      changes_.elements_changed += changed;
      changes_.rows_changed += lse || changed > 0;
    }
    changes_.elements += a.lse.size() * shape_.head_dim_v;
  }

 private:
  uint64_t elements(const std::byte* a, const std::byte* b) {
    const uint32_t size = dtype_bytes(shape_.output_dtype);
    if (std::memcmp(a, b, size_t{shape_.head_dim_v} * size) == 0) return 0;
    uint64_t changed = 0;
    for (uint32_t j = 0; j < shape_.head_dim_v; ++j) {
      uint32_t x = 0, y = 0;
      std::memcpy(&x, a + size_t{j} * size, size);
      std::memcpy(&y, b + size_t{j} * size, size);
      if (x == y) continue;
      ++changed;
      changes_.ulps_max = std::max(changes_.ulps_max, ulp_distance(shape_.output_dtype, x, y));
    }
    return changed;
  }

  const Shape& shape_;
  BitChanges& changes_;
};

bool same_page(const PageImage& a, const PageImage& b) {
  return a.layer == b.layer && a.value == b.value && a.page == b.page;
}

/// Pages that one of the builds left as they were have changed as well.
void add_pages(const OpObservation& before, const OpObservation& after, BitChanges& changes) {
  uint64_t met = 0;
  for (const PageImage& page : before.pages) {
    const auto other = std::find_if(after.pages.begin(), after.pages.end(),
                                    [&](const PageImage& p) { return same_page(page, p); });
    ++changes.pages;
    if (other == after.pages.end()) {
      ++changes.pages_changed;
      continue;
    }
    ++met;
    changes.pages_changed += page.bytes != other->bytes;
  }
  changes.pages += after.pages.size() - met;
  changes.pages_changed += after.pages.size() - met;
}

}  // namespace

void BitChanges::merge(const BitChanges& o) {
  steps += o.steps;
  steps_changed += o.steps_changed;
  steps_incomparable += o.steps_incomparable;
  rows += o.rows;
  rows_changed += o.rows_changed;
  elements += o.elements;
  elements_changed += o.elements_changed;
  lse += o.lse;
  lse_changed += o.lse_changed;
  pages += o.pages;
  pages_changed += o.pages_changed;
  ulps_max = std::max(ulps_max, o.ulps_max);
}

void add_step(const Case& c, const OpObservation& before, const OpObservation& after,
              BitChanges& changes) {
  ++changes.steps;
  BitChanges here;
  StepComparer comparer(c, here);
  if (!comparer.comparable(before, after)) {
    ++changes.steps_incomparable;
    return;
  }
  for (size_t i = 0; i < before.layers.size(); ++i) {
    comparer.layer(before.layers[i], after.layers[i]);
  }
  add_pages(before, after, here);
  here.steps_changed = here.rows_changed + here.pages_changed > 0;
  changes.merge(here);
}

uint64_t ulp_distance(DType type, uint32_t a, uint32_t b) {
  if (a == b) return 0;
  if (std::isnan(decode(type, a)) || std::isnan(decode(type, b))) {
    return std::numeric_limits<uint64_t>::max();
  }
  const int64_t distance = place_of(type, a) - place_of(type, b);
  return static_cast<uint64_t>(distance < 0 ? -distance : distance);
}

}  // namespace kv
