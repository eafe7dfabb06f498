#include "harness/simt/memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/core/check.h"
#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {
namespace {

constexpr uint64_t align_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

Result<void> reserve_at(uint64_t base, uint64_t bytes) {
  void* const wanted = reinterpret_cast<void*>(base);
  void* const got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) {
    return environment_error(
        "the CPU device could not reserve its address range of " + std::to_string(bytes >> 30) +
        " GiB (" + std::strerror(errno) +
        "): it needs `ulimit -v unlimited`, and vm.overcommit_memory must not be 2");
  }
  madvise(wanted, bytes, MADV_DONTDUMP);
  return {};
}

Result<void> reserve_all() {
  const uint64_t bytes = layout::kEnd - layout::kHeapBase;
  KV_RETURN_IF_ERROR(reserve_at(layout::kHeapBase, bytes));
  KV_RETURN_IF_ERROR(reserve_at(layout::kBitsBase, bytes / 8));
  KV_RETURN_IF_ERROR(reserve_at(layout::kWriterBase, bytes * 4));
  KV_RETURN_IF_ERROR(reserve_at(layout::kReaderBase, bytes * 4));
  return reserve_at(layout::kChunkBase, bytes / 2);
}

uint8_t* at(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

constexpr uint64_t kPage = 4096;
/// Freed pages that may stay until reset: small programs ask for the same memory again and again.
constexpr uint64_t kStaleMax = 8 << 20;

void drop_pages(uint64_t begin, uint64_t end) {
  begin = begin / kPage * kPage;
  madvise(at(begin), align_up(end, kPage) - begin, MADV_DONTNEED);
}

/// Gives back the real pages of a range and of its shadows. Zero stamps are older than any access,
/// and the red zones are wider than what a page of any shadow describes: neighbours keep theirs.
void release_pages(uint64_t address, uint64_t bytes) {
  const uint64_t first = address - layout::kHeapBase, last = first + bytes;
  drop_pages(address, address + bytes);
  drop_pages(layout::kBitsBase + first / 8, layout::kBitsBase + (last + 7) / 8);
  drop_pages(layout::kChunkBase + first / 2, layout::kChunkBase + last / 2 + 8);
  for (uint32_t shift : {0, 1, 2}) {
    const uint64_t begin = (first >> shift) * 4, end = ((last >> shift) + 1) * 4;
    drop_pages(layout::kWriterBase + begin, layout::kWriterBase + end);
    drop_pages(layout::kReaderBase + begin, layout::kReaderBase + end);
  }
}

/// Aligned pieces of the heap, whose shadows are whole pages: one can be given back without what
/// lies beside it. No two extents have bytes in one, they lie too far apart.
constexpr uint64_t kBlock = AddressSpace::kRedZone;
/// Blocks of freed sparse extents that stay, since the next case touches much the same ones.
constexpr size_t kKeptBlocksMax = 256;

uint64_t block_of(uint64_t address) { return (address - layout::kHeapBase) / kBlock; }

/// Calls `visit(address, bytes)` for the granules of an extent whose bits are set, a run of them at
/// a time: an address range as wide as a large allocation takes long to walk, however little of it
/// is there.
void each_run(const Extent& extent, const std::vector<uint64_t>& touched, const auto& visit) {
  constexpr uint64_t kGranule = AddressSpace::kGranule;
  const auto is_set = [&](uint64_t g) { return touched[g / 64] >> (g % 64) & 1; };
  const uint64_t count = touched.size() * 64;
  for (uint64_t g = 0; g < count;) {
    if (touched[g / 64] == 0) {
      g = (g / 64 + 1) * 64;
    } else if (!is_set(g)) {
      ++g;
    } else {
      const uint64_t first = g;
      while (g < count && is_set(g)) ++g;
      const uint64_t end = std::min(g * kGranule, extent.bytes);
      visit(extent.base + first * kGranule, end - first * kGranule);
    }
  }
}

}  // namespace

AddressSpace& AddressSpace::instance() {
  static AddressSpace space;
  return space;
}

const Result<void>& AddressSpace::reserve() {
  static const Result<void> reserved = reserve_all();
  return reserved;
}

AddressSpace::AddressSpace() { KV_CHECK(reserve().ok(), reserve().error().message); }

const AddressSpace::Record& AddressSpace::record(const Extent& extent) const {
  return extent.base < layout::kSymbolBase ? heap_records_[extent.index]
                                           : symbol_records_[extent.index];
}

AddressSpace::Record& AddressSpace::record(const Extent& extent) {
  return const_cast<Record&>(std::as_const(*this).record(extent));
}

void AddressSpace::poison(uint64_t address, uint64_t bytes) {
  std::memset(at(address), layout::kPoison, bytes);
  bits::clear(bits(), bit(address), bytes);
}

Result<Extent*> AddressSpace::allocate(uint64_t bytes) {
  const uint64_t base = align_up(heap_end_, 256);
  if (bytes > layout::kHeapBytes || base + bytes + kRedZone > layout::kSymbolBase) {
    return bad_input("out of device memory: no address range for " + std::to_string(bytes) +
                     " bytes");
  }
  const bool sparse = bytes >= kSparseFrom;
  if (!sparse && backed_ + bytes > limit_) {
    return bad_input("out of device memory: " + std::to_string(bytes) + " bytes wanted, " +
                     std::to_string(limit_ - backed_) + " of " + std::to_string(limit_) + " left");
  }
  Extent& extent = heap_.emplace_back();
  extent = {base, bytes, Extent::kLive, uint32_t(heap_records_.size())};
  Record& record = heap_records_.emplace_back();
  record.number = ++numbers_;
  if (sparse) {
    extent.flags |= Extent::kSparse;
    record.touched.resize(align_up(align_up(bytes, kGranule) / kGranule, 64) / 64);
  } else {
    use_blocks(base, bytes);
    poison(base, bytes);
    backed_ += bytes;
  }
  heap_end_ = align_up(base + bytes + kRedZone, 4096);
  return &extent;
}

Result<void> AddressSpace::free(Extent& extent) {
  if (!extent.live()) return bad_input("freed twice");
  extent.flags &= ~uint32_t{Extent::kLive};
  if (extent.flags & Extent::kSparse) {
    std::vector<uint64_t>& touched = record(extent).touched;
    for (uint64_t word : touched) backed_ -= uint64_t(__builtin_popcountll(word)) * kGranule;
    each_run(extent, touched,
             [this](uint64_t address, uint64_t run) { keep_blocks(address, run); });
    touched.clear();
  } else {
    backed_ -= extent.bytes;
    stale_.push_back(&extent);
    stale_bytes_ += extent.bytes;
    for (; stale_bytes_ > kStaleMax; stale_.pop_front()) {
      stale_bytes_ -= stale_.front()->bytes;
      release_pages(stale_.front()->base, stale_.front()->bytes);
    }
  }
  return {};
}

void AddressSpace::use_blocks(uint64_t address, uint64_t bytes) {
  if (kept_blocks_.empty()) return;
  for (uint64_t b = block_of(address); b <= block_of(address + bytes - 1); ++b) {
    kept_blocks_.erase(b);
  }
}

void AddressSpace::keep_blocks(uint64_t address, uint64_t bytes) {
  if (bytes > kKeptBlocksMax * kBlock) return release_pages(address, bytes);
  for (uint64_t b = block_of(address); b <= block_of(address + bytes - 1); ++b) {
    if (kept_blocks_.size() == kKeptBlocksMax) release_blocks();
    kept_blocks_.insert(b);
  }
}

void AddressSpace::release_blocks() {
  for (uint64_t b : kept_blocks_) release_pages(layout::kHeapBase + b * kBlock, kBlock);
  kept_blocks_.clear();
}

void AddressSpace::reset() {
  // The first pages stay: allocate() poisons them again. The rest is given back.
  const uint64_t kept = layout::kHeapBase + kStaleMax;
  for (Extent& extent : heap_) {
    const uint64_t end = extent.base + extent.bytes, begin = std::max(extent.base, kept);
    if (!(extent.flags & Extent::kSparse)) {
      if (end > begin) release_pages(begin, end - begin);
    } else if (extent.live()) {
      (void)free(extent);
    }
  }
  stale_.clear();
  stale_bytes_ = 0;
  heap_.clear();
  found_ = nullptr;
  heap_records_.clear();
  heap_end_ = layout::kHeapBase;
  numbers_ = 0;
  backed_ = 0;
}

Result<Extent*> AddressSpace::add_symbol(uint64_t bytes, uint64_t align, bool constant,
                                         std::string name) {
  const uint64_t base = align_up(symbol_end_, std::max<uint64_t>(align, 256));
  if (bytes > layout::kSymbolBytes || base + bytes + kRedZone > layout::kEnd) {
    return bad_input("no address range for variable " + name + " of " + std::to_string(bytes) +
                     " bytes");
  }
  Extent& extent = symbols_.emplace_back();
  extent = {base, bytes, Extent::kLive | Extent::kDefined, uint32_t(symbol_records_.size())};
  if (constant) extent.flags |= Extent::kConstant;
  symbol_records_.emplace_back().name = std::move(name);
  bits::set(bits(), bit(base), bytes);  // the pages are fresh, hence zero
  symbol_end_ = align_up(base + bytes + kRedZone, 256);
  return &extent;
}

void AddressSpace::release_symbol(Extent& extent) {
  extent.flags &= ~uint32_t{Extent::kLive};
  release_pages(extent.base, extent.bytes);
}

Extent* AddressSpace::find(uint64_t address) {
  if (found_ && address - found_->base < found_->bytes) return found_;
  std::deque<Extent>& list = address < layout::kSymbolBase ? heap_ : symbols_;
  auto after = std::upper_bound(list.begin(), list.end(), address,
                                [](uint64_t a, const Extent& e) { return a < e.base; });
  if (after == list.begin()) return nullptr;
  Extent& extent = *--after;
  return address - extent.base < extent.bytes ? found_ = &extent : nullptr;
}

Extent* AddressSpace::nearest(uint64_t address) {
  Extent* best = nullptr;
  uint64_t best_distance = ~uint64_t{0};
  for (std::deque<Extent>* list : {&heap_, &symbols_}) {
    auto after = std::upper_bound(list->begin(), list->end(), address,
                                  [](uint64_t a, const Extent& e) { return a < e.base; });
    if (after != list->begin()) {
      Extent& below = *std::prev(after);
      const uint64_t end = below.base + below.bytes;
      const uint64_t distance = address < end ? 0 : address - end;
      if (distance < best_distance) best = &below, best_distance = distance;
    }
    if (after != list->end() && after->base - address < best_distance) {
      best = &*after, best_distance = after->base - address;
    }
  }
  return best;
}

bool AddressSpace::touch(Extent& extent, uint64_t address, uint64_t bytes) {
  if (!(extent.flags & Extent::kSparse) || bytes == 0) return true;
  std::vector<uint64_t>& touched = record(extent).touched;
  const uint64_t first = (address - extent.base) / kGranule;
  const uint64_t last = (address - extent.base + bytes - 1) / kGranule;
  for (uint64_t granule = first; granule <= last; ++granule) {
    uint64_t& word = touched[granule / 64];
    const uint64_t mask = uint64_t{1} << (granule % 64);
    if (word & mask) continue;
    if (backed_ + kGranule > limit_) return false;
    const uint64_t begin = granule * kGranule;
    use_blocks(extent.base + begin, std::min(kGranule, extent.bytes - begin));
    poison(extent.base + begin, std::min(kGranule, extent.bytes - begin));
    backed_ += kGranule;
    word |= mask;
  }
  return true;
}

void AddressSpace::set_access(Extent& extent, uint64_t address, uint64_t bytes, uint32_t access) {
  std::vector<Rights>& rights = record(extent).rights;
  std::vector<Rights>& next = next_rights_;
  next.clear();
  const auto add = [&](uint64_t begin, uint64_t end, uint32_t of) {
    if (begin >= end || of == KV_SIMT_ACCESS_READ_WRITE) return;
    if (!next.empty() && next.back().end == begin && next.back().access == of) {
      next.back().end = end;
    } else {
      next.push_back({begin, end, of});
    }
  };
  const uint64_t end = address + bytes;
  for (const Rights& r : rights) add(r.begin, std::min(r.end, address), r.access);
  add(address, end, access);
  for (const Rights& r : rights) add(std::max(r.begin, end), r.end, r.access);
  rights.swap(next);

  extent.flags &= ~uint32_t{Extent::kNoRead | Extent::kNoWrite};
  for (const Rights& r : rights) {
    if (!(r.access & KV_SIMT_ACCESS_READ)) extent.flags |= Extent::kNoRead;
    if (r.access != KV_SIMT_ACCESS_READ_WRITE) extent.flags |= Extent::kNoWrite;
  }
}

uint32_t AddressSpace::access(const Extent& extent, uint64_t address, uint64_t bytes) const {
  uint32_t least = KV_SIMT_ACCESS_READ_WRITE;
  if (extent.flags & Extent::kConstant) least = KV_SIMT_ACCESS_READ;
  const auto& rights = record(extent).rights;
  auto r = std::upper_bound(rights.begin(), rights.end(), address,
                            [](uint64_t a, const Rights& of) { return a < of.end; });
  for (; r != rights.end() && r->begin < address + bytes; ++r) least &= r->access;
  return least;
}

bool AddressSpace::allows(const Extent& extent, uint64_t origin, const uint32_t (&offsets)[32],
                          uint32_t bytes, uint32_t wanted) const {
  const auto& rights = record(extent).rights;
  uint64_t begin = 1, end = 0;  // where the lane before was
  for (uint32_t offset : offsets) {
    const uint64_t address = origin + offset;
    if (address < begin || address + bytes > end) {
      const auto next = std::upper_bound(rights.begin(), rights.end(), address,
                                         [](uint64_t a, const Rights& of) { return a < of.end; });
      const bool inside = next != rights.end() && next->begin <= address;
      if (inside && (next->access & wanted) != wanted) return false;
      begin = address;
      end = inside ? next->end : next != rights.end() ? next->begin : extent.base + extent.bytes;
      if (address + bytes > end) return false;
    }
  }
  return true;
}

void AddressSpace::set_defined(Extent& extent, uint64_t address, uint64_t bytes, bool defined) {
  const bool whole = address == extent.base && bytes == extent.bytes;
  if (!defined) {
    bits::clear(bits(), bit(address), bytes);
    extent.flags &= ~uint32_t{Extent::kDefined};
  } else if (!(extent.flags & Extent::kDefined)) {
    bits::set(bits(), bit(address), bytes);
    if (whole) extent.flags |= Extent::kDefined;
  }
}

bool AddressSpace::defined(const Extent& extent, uint64_t address, uint64_t bytes) const {
  return first(extent, address, bytes, false) == bytes;
}

uint64_t AddressSpace::first(const Extent& extent, uint64_t address, uint64_t bytes,
                             bool defined) const {
  if (extent.flags & Extent::kDefined) return defined ? 0 : bytes;
  const auto find = defined ? bits::first_set : bits::first_clear;
  if (!(extent.flags & Extent::kSparse)) return find(bits(), bit(address), bytes);
  const auto& touched = record(extent).touched;
  for (uint64_t done = 0; done < bytes;) {  // untouched granules have stale bits
    const uint64_t granule = (address + done - extent.base) / kGranule;
    const uint64_t end = extent.base + (granule + 1) * kGranule;
    const uint64_t part = std::min(bytes - done, end - (address + done));
    const bool known = touched[granule / 64] >> (granule % 64) & 1;
    const uint64_t found = known ? find(bits(), bit(address + done), part) : defined ? part : 0;
    if (found < part) return done + found;
    done += part;
  }
  return bytes;
}

}  // namespace kv::simt
