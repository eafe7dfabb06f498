#include "harness/simt/cudart/memory.h"

#include <iterator>
#include <limits>

namespace kv::simt::cudart {

bool is_device_allocation(Owner owner) {
  return owner == Owner::kDevice || owner == Owner::kPool || owner == Owner::kManaged;
}

Result<uint64_t> Memory::allocate(uint64_t bytes, Owner owner) {
  if (bytes == 0) return uint64_t{0};
  KV_ASSIGN_OR_RETURN(const uint64_t base, device_.allocate(bytes));
  if (owner == Owner::kManaged || owner == Owner::kPinned) {
    KV_RETURN_IF_ERROR(device_.set_defined(base, bytes, true));
  }
  ranges_[base] = {.base = base, .bytes = bytes, .owner = owner, .number = ++count_};
  if (is_device_allocation(owner)) device_bytes_ += bytes;
  return base;
}

Result<void> Memory::free(uint64_t base) {
  KV_RETURN_IF_ERROR(device_.free(base));
  const auto found = ranges_.find(base);
  if (found == ranges_.end()) return {};
  if (is_device_allocation(found->second.owner)) device_bytes_ -= found->second.bytes;
  ranges_.erase(found);
  return {};
}

bool Memory::register_host(uint64_t base, uint64_t bytes) {
  if (bytes == 0 || base > std::numeric_limits<uint64_t>::max() - bytes) return false;
  const auto after = ranges_.lower_bound(base);
  if (after != ranges_.end() && after->first < base + bytes) return false;
  if (find(base)) return false;
  ranges_[base] = {.base = base, .bytes = bytes, .owner = Owner::kRegistered};
  return true;
}

bool Memory::unregister_host(uint64_t base) {
  const auto found = ranges_.find(base);
  if (found == ranges_.end() || found->second.owner != Owner::kRegistered) return false;
  ranges_.erase(found);
  return true;
}

void Memory::note_symbol(uint64_t base, uint64_t bytes) {
  ranges_[base] = {.base = base, .bytes = bytes, .owner = Owner::kSymbol};
}

const Range* Memory::find(uint64_t address) const {
  auto above = ranges_.upper_bound(address);
  if (above == ranges_.begin()) return nullptr;
  const Range& range = std::prev(above)->second;
  return address - range.base < range.bytes ? &range : nullptr;
}

Place Memory::place(uint64_t address, uint64_t bytes) const {
  const Range* range = find(address);
  if (!range) return device_.is_device_address(address) ? Place::kInvalid : Place::kPageable;
  if (bytes > range->bytes - (address - range->base)) return Place::kInvalid;
  switch (range->owner) {
    case Owner::kPinned:
    case Owner::kRegistered:
      return Place::kPinned;
    case Owner::kManaged:
      return Place::kManaged;
    default:
      return Place::kDevice;
  }
}

void Memory::forget_allocations() {
  std::erase_if(ranges_, [](const auto& entry) {
    const Owner owner = entry.second.owner;
    return is_device_allocation(owner) || owner == Owner::kPinned;
  });
  device_bytes_ = 0;
  count_ = 0;
}

}  // namespace kv::simt::cudart
