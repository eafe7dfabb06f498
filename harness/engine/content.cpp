#include "harness/engine/content.h"

#include "harness/core/check.h"

namespace kv {

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

void Content::fill(const StoredToken& token, ContentLayer layer, Part part,
                   std::span<std::byte> out) const {
  const uint32_t bytes = row_bytes(case_.shape, part.role);
  KV_CHECK(out.size() == size_t{bytes} * part.heads, "room for one token");
  const Slot slot{.history = token.history, .position = token.position, .previous = token.previous};
  for (uint32_t head = 0; head < part.heads; ++head) {
    const RowAddress where{.role = part.role,
                           .layer = layer.layer + (layer.draft ? case_.shape.layers : 0),
                           .head = head};
    fill_row(case_, where, slot, out.subspan(size_t{head} * bytes, bytes));
  }
}

std::vector<CacheGroup> cache_groups(const Case& c) {
  if (!c.engine->groups.empty()) return c.engine->groups;
  return {{.layers = c.shape.layers, .window_left = c.mask.window_left}};
}

}  // namespace kv
