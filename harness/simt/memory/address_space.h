// Purpose: the global memory of the device: allocations, module variables, rights, definedness.
// Contract: addresses ascend and are never reused before reset(), so that freed memory is caught;
// allocations lie kRedZone apart. A large allocation is sparse: its granules are poisoned and
// counted against the limit when first touched. Not thread safe.
// Example:
//   AddressSpace& s = AddressSpace::instance();
//   Extent* e = *s.allocate(4096);  s.touch(*e, e->base, 4096);
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/memory/extent.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

class AddressSpace {
 public:
  static constexpr uint64_t kRedZone = 64 << 10;
  static constexpr uint64_t kGranule = 64 << 10;
  static constexpr uint64_t kSparseFrom = 4 << 20;

  /// Reserves the range on first use; an error, the same each time, if the machine refuses.
  static const Result<void>& reserve();
  /// Aborts where reserve() fails: ask that first.
  static AddressSpace& instance();

  void set_limit(uint64_t bytes) { limit_ = bytes; }
  Result<Extent*> allocate(uint64_t bytes);
  Result<void> free(Extent& extent);
  /// Frees every allocation and starts addresses again; module variables stay.
  void reset();

  /// A zeroed, defined module variable. It lives until release_symbol().
  Result<Extent*> add_symbol(uint64_t bytes, uint64_t align, bool constant, std::string name);
  void release_symbol(Extent& extent);

  /// The allocation or variable, live or freed, that holds `address`; null if there is none.
  Extent* find(uint64_t address);
  /// The one with the smallest distance to `address`, for reports; null if there are none.
  Extent* nearest(uint64_t address);
  /// Backs [address, address + bytes) of a sparse extent by real memory. False: limit reached.
  bool touch(Extent& extent, uint64_t address, uint64_t bytes);

  /// 1-based order of allocation since reset; 0 for variables.
  uint64_t number(const Extent& extent) const { return record(extent).number; }
  const std::string& name(const Extent& extent) const { return record(extent).name; }

  void set_access(Extent& extent, uint64_t address, uint64_t bytes, uint32_t access);
  /// The least rights of any byte of the range.
  uint32_t access(const Extent& extent, uint64_t address, uint64_t bytes) const;
  /// True if the lanes of a warp, lane l at origin + offsets[l], certainly have the rights
  /// `wanted`; false also where a lane's bytes lie across a border.
  bool allows(const Extent& extent, uint64_t origin, const uint32_t (&offsets)[32], uint32_t bytes,
              uint32_t wanted) const;

  static uint8_t* bits() { return reinterpret_cast<uint8_t*>(layout::kBitsBase); }
  static uint64_t bit(uint64_t address) { return address - layout::kHeapBase; }
  void set_defined(Extent& extent, uint64_t address, uint64_t bytes, bool defined);
  bool defined(const Extent& extent, uint64_t address, uint64_t bytes) const;
  /// Offset from `address` of the first byte that is defined, or that is not; `bytes` if none is.
  uint64_t first(const Extent& extent, uint64_t address, uint64_t bytes, bool defined) const;

 private:
  struct Rights {
    uint64_t begin, end;
    uint32_t access;
  };
  struct Record {
    uint64_t number = 0;
    std::string name;
    std::vector<uint64_t> touched;  // bit for each granule of a sparse extent
    std::vector<Rights> rights;     // ascending, disjoint; bytes in none have all rights
  };

  AddressSpace();
  const Record& record(const Extent& extent) const;
  Record& record(const Extent& extent);
  void poison(uint64_t address, uint64_t bytes);
  /// Blocks of a freed sparse extent keep their real pages until somebody uses them or there are
  /// too many.
  void keep_blocks(uint64_t address, uint64_t bytes);
  void use_blocks(uint64_t address, uint64_t bytes);
  void release_blocks();

  std::deque<Extent> heap_, symbols_;  // ascending by base; addresses of elements are stable
  std::vector<Record> heap_records_, symbol_records_;
  std::vector<Rights> next_rights_;  // kept, so that a change of rights allocates nothing
  uint64_t heap_end_ = layout::kHeapBase, symbol_end_ = layout::kSymbolBase;
  std::deque<Extent*> stale_;  // freed, with real pages still; the oldest first
  uint64_t stale_bytes_ = 0;
  Extent* found_ = nullptr;         // what find() has found last
  std::set<uint64_t> kept_blocks_;  // of freed sparse extents, with real pages still
  uint64_t limit_ = uint64_t{8} << 30, backed_ = 0, numbers_ = 0;
};

}  // namespace kv::simt
