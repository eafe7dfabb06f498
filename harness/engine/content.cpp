#include "harness/engine/content.h"

#include <cstring>

#include "harness/case/kv_scales.h"
#include "harness/core/check.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

// Keys of this design say no more than their position modulo 8: 0 in the column of the queries that
// select them, and -2^e, which hides them, in the others. What hides may be up to twice as large,
// so the lower bits of those tell the token.
void tell_apart(DType type, uint64_t history, RowAddress where, std::span<std::byte> row) {
  constexpr uint32_t kBits = 7, kElements = 64 / kBits;  // the mantissa of a bfloat16
  const size_t bytes = dtype_bytes(type);
  const uint64_t place = uint64_t{where.layer} << 32 | where.head;
  uint64_t word = 0;
  for (size_t i = 0; i * bytes < row.size(); ++i) {
    if (i % kElements == 0) word = Philox{history}.word(place, i);
    uint32_t bits = 0;
    std::memcpy(&bits, row.data() + i * bytes, bytes);
    if (bits == 0) continue;
    const auto mine = static_cast<uint32_t>(word >> (i % kElements * kBits)) & ((1u << kBits) - 1);
    bits |= mine << (type == DType::kF16 ? 3 : type == DType::kF32 ? 16 : 0);
    std::memcpy(row.data() + i * bytes, &bits, bytes);
  }
}

}  // namespace

uint32_t Content::key_bytes() const {
  return case_.shape.kv_heads * row_bytes(case_.shape, TensorRole::kKey);
}
uint32_t Content::value_bytes() const {
  return case_.shape.kv_heads * row_bytes(case_.shape, TensorRole::kValue);
}
uint32_t Content::query_bytes() const {
  return case_.shape.query_heads * row_bytes(case_.shape, TensorRole::kQuery);
}

void Content::key(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const {
  fill(token, layer, {TensorRole::kKey, case_.shape.kv_heads}, out);
}
void Content::value(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const {
  fill(token, layer, {TensorRole::kValue, case_.shape.kv_heads}, out);
}
void Content::query(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const {
  fill(token, layer, {TensorRole::kQuery, case_.shape.query_heads}, out);
}

uint32_t Content::stored_key_bytes() const {
  const Shape& s = case_.shape;
  return s.kv_heads * s.head_dim_k * dtype_bytes(s.kv_dtype);
}
uint32_t Content::stored_value_bytes() const {
  const Shape& s = case_.shape;
  return s.kv_heads * s.head_dim_v * dtype_bytes(s.kv_dtype);
}

void Content::scales(uint64_t history, ContentLayer layer, bool value, std::span<float> out) const {
  const uint32_t at = layer.layer + (layer.draft ? case_.shape.layers : 0);
  for (uint32_t head = 0; head < out.size(); ++head) {
    out[head] = scale_of(case_, history, {.layer = at, .value = value, .head = head});
  }
}

void Content::fill(const StoredToken& token, ContentLayer layer, Part part,
                   std::span<std::byte> out) const {
  const uint32_t bytes = row_bytes(case_.shape, part.role);
  KV_CHECK(out.size() == size_t{bytes} * part.heads, "room for one token");
  const Slot slot{.history = token.history, .position = token.position, .previous = token.previous};
  for (uint32_t head = 0; head < part.heads; ++head) {
    const RowAddress where{.role = part.role,
                           .layer = layer.layer + (layer.draft ? case_.shape.layers : 0),
                           .head = head};
    const auto row = out.subspan(size_t{head} * bytes, bytes);
    fill_row(case_, where, slot, row);
    if (part.role == TensorRole::kKey && case_.data.design == Design::kSubsetSelect) {
      tell_apart(tensor_dtype(case_.shape, part.role), token.history, where, row);
    }
  }
}

std::vector<CacheGroup> cache_groups(const Case& c) {
  if (!c.engine->groups.empty()) return c.engine->groups;
  return {{.layers = c.shape.layers, .window_left = c.mask.window_left}};
}

}  // namespace kv
