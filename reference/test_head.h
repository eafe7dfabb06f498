// Purpose: a head's inputs for tests: random values, any mask, any formats.
// Contract: owns what the HeadBlock points to; the block is valid until the head is changed.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/philox.h"
#include "reference/inputs.h"

namespace kv::reference {

inline Shape shape_of(DType type) {
  Shape shape;
  shape.query_dtype = shape.kv_dtype = type;
  return shape;
}
inline Shape shape_of(DType query, DType kv) {
  Shape shape = shape_of(query);
  shape.kv_dtype = kv;
  return shape;
}

struct TestHead {
  struct Options {
    uint32_t rows = 1, slots = 16, dim_k = 32, dim_v = 32;
    DType dtype = DType::kF16, output_dtype = DType::kF16;
    float scale = 0.25f, softcap = 0;
    uint64_t seed = 1;
    double query_size = 1, key_size = 1, value_size = 1;
    std::optional<DType> kv_dtype = {};  // another than the query's
    DType kv() const { return kv_dtype.value_or(dtype); }
  };
  Options options;
  std::vector<double> query, key, value;                    // exact values of the stored elements
  std::vector<std::vector<uint8_t>> visible;                // [rows][slots]
  std::vector<float> key_scales, value_scales;              // empty: none
  std::vector<float> slopes, sinks;                         // [rows] or empty
  std::vector<std::vector<double>> rotated, rotated_error;  // [rows][dim_k] or empty

  explicit TestHead(const Options& o)
      : options(o),
        query(o.rows * o.dim_k),
        key(o.slots * o.dim_k),
        value(o.slots * o.dim_v),
        visible(o.rows, std::vector<uint8_t>(o.slots, 1)) {
    fill(query, 0, o.query_size, o.dtype);
    fill(key, 1, o.key_size, o.kv());
    fill(value, 2, o.value_size, o.kv());
  }

  /// Roughly normal, rounded to the element type.
  void fill(std::vector<double>& to, uint64_t stream, double size, DType type) {
    const Philox random{.key = options.seed};
    for (size_t i = 0; i < to.size(); ++i) {
      double sum = 0;
      for (uint32_t word : random.block(stream, i)) sum += word * 0x1p-32 - 0.5;
      to[i] = decode(type, encode_saturating(type, sum * 1.7320508 * size));
    }
  }
  /// An element of K or V.
  void set(double& element, double x) {
    element = decode(options.kv(), encode_saturating(options.kv(), x));
  }

  /// Valid while this object lives and until it is changed.
  const HeadBlock& block() {
    const Options& o = options;
    const uint32_t bytes = dtype_bytes(o.dtype), kv_bytes = dtype_bytes(o.kv());
    pack(o.dtype, query, query_bytes_);
    pack(o.kv(), key, key_bytes_);
    pack(o.kv(), value, value_bytes_);
    keys_.clear();
    values_.clear();
    rows_.clear();
    for (uint32_t s = 0; s < o.slots; ++s) {
      keys_.push_back(&key_bytes_[size_t{s} * o.dim_k * kv_bytes]);
      values_.push_back(&value_bytes_[size_t{s} * o.dim_v * kv_bytes]);
    }
    for (uint32_t r = 0; r < o.rows; ++r) {
      QueryRow row{.query = &query_bytes_[size_t{r} * o.dim_k * bytes],
                   .visible = visible[r],
                   .anchor = o.slots - 1};
      if (!slopes.empty()) row.alibi_slope = slopes[r];
      if (!sinks.empty()) row.sink = sinks[r];
      if (!rotated.empty()) {
        row.rotated = rotated[r];
        row.rotated_error = rotated_error[r];
      }
      rows_.push_back(row);
    }
    block_ = {.shape = {.dim_k = o.dim_k,
                        .dim_v = o.dim_v,
                        .query_dtype = o.dtype,
                        .kv_dtype = o.kv(),
                        .output_dtype = o.output_dtype,
                        .scale = o.scale,
                        .softcap = o.softcap},
              .keys = keys_,
              .values = values_,
              .key_scales = key_scales,
              .value_scales = value_scales,
              .rows = rows_};
    return block_;
  }

 private:
  static void pack(DType type, const std::vector<double>& from, std::vector<std::byte>& to) {
    to.resize(from.size() * dtype_bytes(type));
    encode_row(type, from.data(), from.size(), to.data());
  }
  std::vector<std::byte> query_bytes_, key_bytes_, value_bytes_;
  std::vector<const std::byte*> keys_, values_;
  std::vector<QueryRow> rows_;
  HeadBlock block_;
};

}  // namespace kv::reference
