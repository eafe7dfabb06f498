#include "harness/run/pool_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/check.h"

namespace kv {
namespace {

constexpr uint64_t kFarBytes = uint64_t{1} << 32;
constexpr uint64_t kBlockBytes = 32 << 10;  // compared at a time, inside the nearest cache

std::vector<std::byte> repeated(std::span<const std::byte> page, uint32_t count) {
  std::vector<std::byte> pages;
  pages.reserve(count * page.size());
  for (uint32_t i = 0; i < count; ++i) pages.insert(pages.end(), page.begin(), page.end());
  return pages;
}

uint64_t rounded_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Result<PoolMemory> PoolMemory::create(const Case& c, Place place, const CudaRuntime& runtime) {
  PoolMemory pool;
  pool.place_ = place;
  pool.dtype_ = c.shape.kv_dtype;
  pool.page_count_ = c.pool.page_count;
  pool.page_slots_ = c.pool.page_slots;
  pool.kv_heads_ = c.shape.kv_heads;
  pool.head_dim_ = place.value ? c.shape.head_dim_v : c.shape.head_dim_k;
  pool.strides_ = page_strides(c, pool.head_dim_);
  pool.page_bytes_ = static_cast<uint64_t>(pool.strides_.page) * dtype_bytes(pool.dtype_);
  if (c.pool.layout == CacheLayout::kInterleaved) pool.gap_bytes_ = pool.row_bytes();
  const bool far = c.pool.order == PageOrder::kFarApart;
  pool.page_stride_bytes_ = far ? kFarBytes + rounded_up(pool.page_bytes_, 256) : pool.page_bytes_;
  pool.undefined_ = c.pool.poison == Poison::kUndefined;

  const uint64_t span = pool.page_offset(pool.page_count_ - 1) + pool.page_bytes_;
  auto memory = DeviceBuffer::allocate(runtime, span);
  if (!memory.ok()) {
    if (!far) return memory.error();
    return unsupported("pages more than 4 GiB apart: " + memory.error().message);
  }
  pool.memory_ = std::move(memory).value();
  KV_RETURN_IF_ERROR(pool.poison(c));
  return pool;
}

uint64_t PoolMemory::row_bytes() const {
  return uint64_t{kv_heads_} * head_dim_ * dtype_bytes(dtype_);
}

void PoolMemory::set_page_access(uint32_t page, uint32_t access) const {
  const uint64_t row = row_bytes(), first = page_offset(page);
  if (gap_bytes_ == 0) return memory_.set_access(first, page_bytes_, access);
  for (uint32_t slot = 0; slot < page_slots_; ++slot)
    memory_.set_access(first + slot * (row + gap_bytes_), row, access);
}

Result<void> PoolMemory::poison(const Case& c) {
  poison_code_ = pool_poison_code(c.pool.poison, dtype_);
  const uint32_t element_bytes = dtype_bytes(dtype_);
  std::vector<std::byte> page(page_bytes_);
  // One element, then twice as many at a time.
  std::memcpy(page.data(), &poison_code_, element_bytes);
  for (size_t done = element_bytes; done < page.size(); done *= 2)
    std::memcpy(&page[done], page.data(), std::min(done, page.size() - done));
  const bool of_one_byte =
      page.size() < 2 || std::memcmp(page.data(), &page[1], element_bytes) == 0;
  const SharedBytes poisoned(std::move(page));
  seen_.assign(page_count_, poisoned);

  if (contiguous() && gap_bytes_ == 0) {
    KV_RETURN_IF_ERROR(of_one_byte ? memory_.fill(poisoned[0])
                                   : memory_.upload(repeated(poisoned.span(), page_count_)));
    memory_.set_access(0, memory_.bytes(), KV_SIMT_ACCESS_READ);
    if (undefined_) memory_.set_undefined(0, memory_.bytes());
    return {};
  }
  memory_.set_access(0, memory_.bytes(), KV_SIMT_ACCESS_NONE);
  for (uint32_t page = 0; page < page_count_; ++page) {
    KV_RETURN_IF_ERROR(memory_.upload(poisoned.span(), page_offset(page)));
    set_page_access(page, KV_SIMT_ACCESS_READ);
    if (undefined_) memory_.set_undefined(page_offset(page), page_bytes_);
  }
  return {};
}

Tensor PoolMemory::tensor(uint32_t dims) const {
  const auto stride = static_cast<int64_t>(page_stride_bytes_ / dtype_bytes(dtype_));
  return Tensor(memory_.data(), dl_type(dtype_), {page_count_, page_slots_, kv_heads_, dims},
                {stride, strides_.slot, strides_.head, 1});
}

void PoolMemory::open_for_writing(std::span<const PageId> pages) const {
  for (const PageId page : pages) set_page_access(page.value, KV_SIMT_ACCESS_READ_WRITE);
}

void PoolMemory::close(std::span<const PageId> pages) const {
  for (const PageId page : pages) set_page_access(page.value, KV_SIMT_ACCESS_READ);
}

void PoolMemory::retire(std::span<const PageId> pages) const {
  if (!undefined_) return;
  for (const PageId page : pages) memory_.set_undefined(page_offset(page.value), page_bytes_);
}

Result<std::vector<PageImage>> PoolMemory::changed_pages(std::span<const PageId> expected) {
  std::vector<PageImage> images;
  const auto pages_at_once =
      contiguous() ? static_cast<uint32_t>(std::max<uint64_t>(1, kBlockBytes / page_bytes_)) : 1;
  for (uint32_t first = 0; first < page_count_; first += pages_at_once) {
    const uint32_t count = std::min(pages_at_once, page_count_ - first);
    // What changed is remembered, and reported, where it was read to.
    const auto block = std::make_shared<std::vector<std::byte>>(count * page_bytes_);
    KV_RETURN_IF_ERROR(memory_.download(*block, page_offset(first)));
    for (uint32_t i = 0; i < count; ++i) {
      const auto now = std::span<const std::byte>(*block).subspan(i * page_bytes_, page_bytes_);
      SharedBytes& seen = seen_[first + i];
      const bool changed = std::memcmp(seen.data(), now.data(), page_bytes_) != 0;
      if (changed && gap_bytes_ > 0) note_gaps(first + i, now);
      if (changed) seen = SharedBytes::part_of(block, now);
      if (changed || std::binary_search(expected.begin(), expected.end(), PageId(first + i)))
        images.push_back(image(first + i));
    }
  }
  return images;
}

/// A GPU has no rights that would tell of it.
void PoolMemory::note_gaps(uint32_t page, std::span<const std::byte> now) {
  const auto seen = seen_[page].span();
  const uint64_t row = row_bytes();
  for (uint32_t slot = 0; slot < page_slots_ && !in_gap_; ++slot) {
    const uint64_t gap = slot * (row + gap_bytes_) + row;
    in_gap_ = first_change(std::string("memory between the rows of the ") + name(),
                           seen.subspan(gap, gap_bytes_), now.subspan(gap, gap_bytes_));
  }
}

PageImage PoolMemory::image(uint32_t page) const {
  PageImage image{.layer = place_.layer, .value = place_.value, .page = PageId(page), .bytes = {}};
  const SharedBytes& from = seen_[page];
  if (strides_.head == head_dim_ && strides_.slot == int64_t{kv_heads_} * head_dim_) {
    image.bytes = from;  // dense already
    return image;
  }
  const uint64_t element_bytes = dtype_bytes(dtype_), row_bytes = head_dim_ * element_bytes;
  std::vector<std::byte> bytes;
  bytes.reserve(page_slots_ * this->row_bytes());
  for (uint32_t slot = 0; slot < page_slots_; ++slot) {
    for (uint32_t head = 0; head < kv_heads_; ++head) {
      const int64_t element = slot * strides_.slot + head * strides_.head;
      const auto row =
          from.span().subspan(static_cast<uint64_t>(element) * element_bytes, row_bytes);
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
  }
  image.bytes = std::move(bytes);
  return image;
}

void PoolMemory::report_undefined(std::span<const Batch::Place> slots) const {
  if (contiguous() && memory_.first_undefined(0, memory_.bytes()).bytes == 0) return;
  for (const Batch::Place& place : slots)
    for (uint32_t head = 0; head < kv_heads_; ++head)
      if (report_undefined(place, head)) return;
}

bool PoolMemory::report_undefined(const Batch::Place& place, uint32_t head) const {
  const uint64_t element_bytes = dtype_bytes(dtype_);
  const uint64_t in_page =
      static_cast<uint64_t>(place.slot * strides_.slot + head * strides_.head) * element_bytes;
  const uint64_t first = page_offset(place.page.value) + in_page;
  const DeviceBuffer::Run run = memory_.first_undefined(first, head_dim_ * element_bytes);
  if (run.bytes == 0) return false;
  // An element that still is poison was never written: its bytes are wrong, and are judged.
  const uint64_t element = (run.offset - first) / element_bytes * element_bytes;
  const std::byte* now = &seen_[place.page.value][in_page + element];
  if (std::memcmp(now, &poison_code_, element_bytes) == 0) return false;
  memory_.report_undefined(run, std::string("the ") + name() + ", page " +
                                    std::to_string(place.page.value) + ", slot " +
                                    std::to_string(place.slot) + ", head " + std::to_string(head));
  return true;
}

Result<std::optional<Trespass>> PoolMemory::damaged_red_zone() const {
  if (in_gap_) return in_gap_;
  return memory_.damaged_red_zone(name());
}

}  // namespace kv
