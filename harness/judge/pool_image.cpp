#include "harness/judge/pool_image.h"

#include <algorithm>
#include <cstring>

namespace kv {
namespace {

std::vector<std::byte> poison_page(const Case& c, uint32_t row_bytes) {
  const uint32_t bytes = dtype_bytes(c.shape.kv_dtype);
  const uint32_t code = pool_poison_code(c.pool.poison, c.shape.kv_dtype);
  std::vector<std::byte> page(size_t{c.pool.page_slots} * c.shape.kv_heads * row_bytes);
  // One element, then twice as many at a time.
  std::memcpy(page.data(), &code, bytes);
  for (size_t done = bytes; done < page.size(); done *= 2)
    std::memcpy(&page[done], page.data(), std::min(done, page.size() - done));
  return page;
}

}  // namespace

PoolImage::PoolImage(const Case& c)
    : layers_(c.shape.layers),
      page_count_(c.pool.page_count),
      page_slots_(c.pool.page_slots),
      kv_heads_(c.shape.kv_heads),
      value_in_key_(c.shape.value_in_key),
      key_row_bytes_(c.shape.head_dim_k * dtype_bytes(c.shape.kv_dtype)),
      value_row_bytes_(value_in_key_ ? key_row_bytes_
                                     : c.shape.head_dim_v * dtype_bytes(c.shape.kv_dtype)),
      key_poison_(poison_page(c, key_row_bytes_)),
      value_poison_(poison_page(c, value_row_bytes_)) {}

std::string PoolImage::defect(const PageImage& image) const {
  if (image.layer >= layers_ || image.page.value >= page_count_) {
    return "an image of layer " + std::to_string(image.layer) + ", page " +
           std::to_string(image.page.value) + ", which do not exist";
  }
  if (image.value && value_in_key_) return "an image of V, which lies in K";
  const size_t want = size_t{page_slots_} * slot_bytes(image.value);
  if (image.bytes.size() == want) return "";
  return "an image of " + std::to_string(image.bytes.size()) + " bytes of a page of " +
         std::to_string(want);
}

void PoolImage::replace(const PageImage& image) { pages_[place_of(image)] = image.bytes; }

std::span<const std::byte> PoolImage::page(const PagePlace& place) const {
  const auto found = pages_.find({place.layer, place.value && !value_in_key_, place.page});
  if (found != pages_.end()) return found->second.span();
  return place.value ? value_poison_ : key_poison_;
}

std::span<const std::byte> PoolImage::slot(const PagePlace& place, uint32_t slot_in_page) const {
  const size_t bytes = slot_bytes(place.value);
  return page(place).subspan(slot_in_page * bytes, bytes);
}

std::span<const std::byte> PoolImage::row(const PagePlace& place, uint32_t slot_in_page,
                                          uint32_t head) const {
  const size_t bytes = row_bytes(place.value);
  return slot(place, slot_in_page).subspan(head * bytes, bytes);
}

}  // namespace kv
