// Purpose: what append makes of new K and V on their way into the cache.
// Contract: K is turned by its position first; then K and V are divided by their scales, rounded to
// nearest even and, in 8 bits, saturated. The same numbers as AttentionShape's, for who stores
// them.
// Example:  CacheFormat format{.given = DType::kF16, .stored = DType::kE4M3, ...};
#pragma once

#include <cstdint>
#include <vector>

#include "kvattn/status.h"
#include "kvattn/tensor.h"

namespace kvattn {

/// Which slots share a dequantisation scale of an 8-bit cache; K and V have scales of their own.
enum class ScaleGranularity : uint8_t {
  kNone,    // an element is its code
  kTensor,  // fp32 [1]
  kHead,    // [kv_heads]
  kToken,   // [pages, page_slots]: of the slot that a token lies in
  kPage,    // [pages]
};

/// Rotary position embedding: pair i of the leading `dims` dimensions of Q and K turns by the angle
/// position * theta^(-2i / dims). K is stored turned.
struct Rope {
  enum class Pairing : uint8_t {
    kNone,
    kNeox,         // (i, i + dims / 2)
    kInterleaved,  // (2i, 2i + 1)
  } pairing = Pairing::kNone;
  int64_t dims = 0;  // even, up to head_dim; 0 exactly without a pairing
  double theta = 10000;
};

struct CacheFormat {
  DType given = DType::kF16, stored = DType::kF16;
  ScaleGranularity scales = ScaleGranularity::kNone;
  Rope rope;
  int64_t kv_heads = 1, head_dim = 1;
  /// [layers][kv_heads], where tensors or heads have scales.
  std::vector<float> key_scales, value_scales;

  bool has_slot_scales() const {
    return scales == ScaleGranularity::kToken || scales == ScaleGranularity::kPage;
  }
  bool changes_key() const { return given != stored || rope.pairing != Rope::Pairing::kNone; }
};

/// Elements of 8 bits, which stand for a number times a scale.
constexpr bool is_code(DType dtype) {
  return dtype == DType::kE4M3 || dtype == DType::kE5M2 || dtype == DType::kI8;
}

/// Ok, or why rows of such a format are refused or not offered. Part of check_shape.
Status check_format(const CacheFormat& format);

}  // namespace kvattn
