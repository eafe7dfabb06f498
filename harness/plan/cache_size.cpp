#include "harness/plan/cache_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/check.h"

namespace kv {

Result<CacheSize> CacheSize::create(const KvModel& model, const CacheLayoutChoice& choice) {
  KV_CHECK(choice.ranks >= 1 && choice.ranks <= kRanksMax, "ranks");
  KV_CHECK(choice.page_slots >= 1, "page_slots");
  CacheSize size;
  size.model_ = model;
  size.choice_ = choice;
  size.layers_ = model.layers();
  const uint64_t element = dtype_bytes(choice.dtype);
  if (model.latent_dim > 0) {
    size.key_bytes_ = model.latent_dim * element;
    return size;
  }
  const bool splits = model.kv_heads % choice.ranks == 0 || choice.ranks % model.kv_heads == 0;
  if (!splits) {
    return bad_input(fmt::format("ranks: expected a divisor or a multiple of {} KV heads, got {}",
                                 model.kv_heads, choice.ranks));
  }
  const uint64_t heads = std::max<uint64_t>(1, model.kv_heads / choice.ranks);
  size.key_bytes_ = heads * model.head_dim_k * element;
  size.value_bytes_ = heads * model.head_dim_v * element;
  return size;
}

uint64_t CacheSize::group_pages(const LayerGroup& group, uint64_t slots) const {
  const uint64_t page = choice_.page_slots;
  const uint64_t pages = (slots + page - 1) / page;
  if (group.window_slots == 0) return pages;
  // W slots in a row touch at most ceil((W - 1) / page) + 1 pages.
  return std::min(pages, (group.window_slots + page - 2) / page + 1);
}

uint64_t CacheSize::request_bytes(uint64_t slots) const {
  uint64_t bytes = 0;
  for (const LayerGroup& group : model_.groups) {
    bytes += group.layers * group_pages(group, slots) * choice_.page_slots * layer_token_bytes();
  }
  return bytes;
}

uint64_t CacheSize::request_live_bytes(uint64_t slots) const {
  uint64_t bytes = 0;
  for (const LayerGroup& group : model_.groups) {
    const uint64_t kept = group.window_slots == 0 ? slots : std::min(slots, group.window_slots);
    bytes += group.layers * kept * layer_token_bytes();
  }
  return bytes;
}

}  // namespace kv
