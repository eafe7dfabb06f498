// Purpose: the inputs of the detection table: random designs as test suites draw them, and designs
// engineered so that little can hide.
// Contract: a pure function of design, sizes and seed. Every row sees every key.
// Source: docs/numerics.md §5, §6.1 (E1 to E6).
#pragma once

#include <string_view>

#include "reference/test_head.h"

namespace kv::reference {

enum class DetectDesign : uint8_t {
  kNormal,
  kHeavyTail,
  kLargeScores,
  kNeedle,
  kCancellingValues,
  kTinyQuery,
  // engineered
  kSparseCode,
  kUniform,  // zero scores, integer V that sums to nothing
  kDyadic,   // P powers of two, integer V
  kDyadicSparse,
  kSubsetSelect,  // row r sees an equal share of keys, the rest weighs nothing
  kBoundaryNeedles,
  kAscending,
};
inline constexpr size_t kDetectDesigns = 13;
std::string_view design_name(DetectDesign design);
inline bool is_engineered(DetectDesign design) { return design >= DetectDesign::kSparseCode; }

struct DetectSize {
  uint32_t rows = 2, keys = 1024, dim = 64;
};
TestHead detect_head(DetectDesign design, DType type, const DetectSize& size, uint64_t seed);

}  // namespace kv::reference
