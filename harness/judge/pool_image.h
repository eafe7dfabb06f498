// Purpose: what the pages of the cache hold, as far as the worker has reported.
// Contract: a page that was never reported holds the pool's poison. Pages are dense:
// [page_slots][kv_heads][head_dim], in the cache's dtype. Where V lies in K, its pages are K's, and
// so are the bytes of its rows and slots: a row of V is the beginning of what row() gives.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/observation.h"

namespace kv {

/// One page of K or V of one layer.
struct PagePlace {
  uint32_t layer = 0;
  bool value = false;
  PageId page = {};
  auto operator<=>(const PagePlace&) const = default;
};
inline PagePlace place_of(const PageImage& image) { return {image.layer, image.value, image.page}; }

class PoolImage {
 public:
  explicit PoolImage(const Case& c);

  /// What is wrong with an image that came from a worker; "" when nothing is.
  std::string defect(const PageImage& image) const;
  void replace(const PageImage& image);

  std::span<const std::byte> page(const PagePlace& place) const;
  /// All heads of one slot, and one head of it.
  std::span<const std::byte> slot(const PagePlace& place, uint32_t slot_in_page) const;
  std::span<const std::byte> row(const PagePlace& place, uint32_t slot_in_page,
                                 uint32_t head) const;
  uint32_t row_bytes(bool value) const { return value ? value_row_bytes_ : key_row_bytes_; }
  uint32_t slot_bytes(bool value) const { return row_bytes(value) * kv_heads_; }

 private:
  uint32_t layers_, page_count_, page_slots_, kv_heads_;
  bool value_in_key_;
  uint32_t key_row_bytes_, value_row_bytes_;
  std::vector<std::byte> key_poison_, value_poison_;  // one page each
  std::map<PagePlace, SharedBytes> pages_;
};

}  // namespace kv
