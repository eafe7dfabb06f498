// Purpose: opaque handles that cannot dangle: numbers, never reused, never host addresses.
// Contract: each table counts from its own base, so a handle of another kind is not found.
// Example:
//   HandleTable<Event, cudaEvent_t> events(0x2000000);
//   cudaEvent_t handle = events.insert({});  Event* event = events.find(handle);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace kv::simt::cudart {

template <class T, class Handle>
class HandleTable {
 public:
  explicit HandleTable(uintptr_t base) : next_(base) {}

  Handle insert(T value) {
    const uintptr_t number = next_++;
    items_.emplace(number, std::make_unique<T>(std::move(value)));
    return reinterpret_cast<Handle>(number);
  }
  /// Null for a handle that never was or is no more. The pointer stays good until erase().
  T* find(Handle handle) const {
    const auto found = items_.find(reinterpret_cast<uintptr_t>(handle));
    return found == items_.end() ? nullptr : found->second.get();
  }
  void erase(Handle handle) { items_.erase(reinterpret_cast<uintptr_t>(handle)); }
  void clear() { items_.clear(); }

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::map<uintptr_t, std::unique_ptr<T>> items_;
  uintptr_t next_;
};

}  // namespace kv::simt::cudart
