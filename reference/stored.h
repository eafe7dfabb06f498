// Purpose: what an append may store for one element that it rotates or quantises.
// Contract: the stored code decodes to a value in [low, high]; anything else is a violation. An
// element that is only moved has error 0 and no scale: then low == high, the same value.
// Quantising divides by the slot's fp32 scale (or multiplies by its reciprocal: three roundings)
// and rounds to nearest, ties included by the error; beyond the range it saturates: e4m3 at 448,
// e5m2 at 57344, int8 at 127 and -127 or -128.
// Source: docs/numerics.md §2.7, §9 (SATFINITE).
#pragma once

#include <optional>

#include "harness/core/formats.h"

namespace kv::reference {

struct StoredElement {
  double value = 0, error = 0;      // before quantisation (rope.h)
  std::optional<float> scale = {};  // finite, not 0
  DType dtype = DType::kF16;
};
struct StoredRange {
  double low = 0, high = 0;  // of the decoded code, without its scale
};
StoredRange admissible_store(const StoredElement& element);

}  // namespace kv::reference
