// Purpose: the pages of one tensor (K or V) of one layer, on the device, and a copy of what they
// held when they were last looked at.
// Contract: pages lie as the case's pool says: close together, or more than 4 GiB apart inside one
// sparse allocation whose gaps no kernel may touch. Of an interleaved layout this is K's half or
// V's alone: what lies between its rows is the other's, and nobody's here. Before anything is
// written every element is the pool's poison. Kernels may write only pages opened by
// open_for_writing(); a GPU has no such rights, there changed_pages() alone tells. Example:
// pool.open_for_writing(pages); append(...); pool.close(pages);
//          KV_ASSIGN_OR_RETURN(auto images, pool.changed_pages(pages));
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/batch.h"
#include "harness/run/device_buffer.h"
#include "harness/run/host_bytes.h"
#include "harness/run/observation.h"
#include "harness/run/shape.h"
#include "harness/run/tensor.h"

namespace kv {

class PoolMemory {
 public:
  struct Place {
    uint32_t layer = 0;
    bool value = false;
  };
  /// Unsupported when pages must lie far apart and the device has no room for that.
  static Result<PoolMemory> create(const Case& c, Place place, const CudaRuntime& runtime);

  /// [pages, page_slots, kv_heads, head_dim]
  Tensor tensor() const { return tensor(head_dim_); }
  /// Its first `dims` dimensions.
  Tensor tensor(uint32_t dims) const;

  void open_for_writing(std::span<const PageId> pages) const;
  void close(std::span<const PageId> pages) const;
  /// Nothing has been written since the pages were given back: their bytes stay, but whoever
  /// computes with them computes with undefined data (poison kUndefined on the CPU device).
  void retire(std::span<const PageId> pages) const;

  /// Dense images of the pages that changed since the last call, and of `expected` whether changed
  /// or not; ascending.
  Result<std::vector<PageImage>> changed_pages(std::span<const PageId> expected);
  /// CPU device only: a finding of the device for the first of these slots that was written, since
  /// changed_pages() looked, with undefined data. Bytes do not tell, they may be right.
  void report_undefined(std::span<const Batch::Place> slots) const;
  Result<std::optional<Trespass>> damaged_red_zone() const;

 private:
  PoolMemory() = default;
  bool report_undefined(const Batch::Place& place, uint32_t head) const;
  uint64_t page_offset(uint32_t page) const { return page * page_stride_bytes_; }
  bool contiguous() const { return page_stride_bytes_ == page_bytes_; }
  Result<void> poison(const Case& c);
  uint64_t row_bytes() const;  // of a slot, all heads, in a layout that has gaps
  void set_page_access(uint32_t page, uint32_t access) const;
  void note_gaps(uint32_t page, std::span<const std::byte> now);
  PageImage image(uint32_t page) const;
  const char* name() const { return place_.value ? "value cache" : "key cache"; }

  Place place_;
  DType dtype_ = DType::kF16;
  uint32_t page_count_ = 0, page_slots_ = 0, kv_heads_ = 0, head_dim_ = 0;
  PageStrides strides_;             // elements; page is the stride of close pages
  uint64_t page_bytes_ = 0;         // that hold data
  uint64_t page_stride_bytes_ = 0;  // from page to page
  uint64_t gap_bytes_ = 0;          // behind each slot's rows
  std::optional<Trespass> in_gap_;
  bool undefined_ = false;    // poison kUndefined
  uint32_t poison_code_ = 0;  // of every element at first
  DeviceBuffer memory_;
  std::vector<SharedBytes> seen_;  // [page_count] of page_bytes, in the device's layout
};

}  // namespace kv
