// Purpose: numbers of different things do not mix: pages, slots, bytes, and the names of requests.
// Contract: identifiers are scoped enumerations, without arithmetic. A Count adds and compares
// within its own unit only. The n-th slot of a request is named by the number of slots before it.
// Example:  PageCount pages = pages_for(SlotCount(17), 16);  // 2
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <type_traits>

namespace kvattn {

enum class Page : int32_t {};      // a page of the device pool
enum class HostPage : int32_t {};  // a page of the host pool
enum class Group : int32_t {};     // layers that share block tables
enum class BatchSlot : int32_t {};
enum class RequestId : uint32_t {};   // the caller's name of a request
enum class Owner : uint64_t {};       // the tenant that a request belongs to
enum class Ticket : uint64_t {};      // one for each admission, never given twice
enum class SideInput : uint64_t {};   // adapter, salt, image: what K and V depend on beside tokens
enum class Token : uint64_t {};       // token id
enum class StepNumber : uint64_t {};  // launched steps, from 1

constexpr Page kNoPage{-1};
constexpr BatchSlot kNoBatchSlot{-1};

/// The number behind an identifier.
template <class Enum>
constexpr std::underlying_type_t<Enum> index_of(Enum id) {
  return static_cast<std::underlying_type_t<Enum>>(id);
}

template <class Tag>
struct Count {
  int64_t value = 0;
  constexpr Count() = default;
  constexpr explicit Count(int64_t v) : value(v) {}
  constexpr auto operator<=>(const Count&) const = default;
  constexpr Count& operator+=(Count other) { return *this = *this + other; }
  constexpr Count& operator-=(Count other) { return *this = *this - other; }
  friend constexpr Count operator+(Count a, Count b) { return Count(a.value + b.value); }
  friend constexpr Count operator-(Count a, Count b) { return Count(a.value - b.value); }
  friend std::ostream& operator<<(std::ostream& out, Count c) { return out << c.value; }
};
using SlotCount = Count<struct SlotTag>;
using PageCount = Count<struct PageTag>;
using ByteCount = Count<struct ByteTag>;

/// Pages that `slots` slots need, rounded up.
constexpr PageCount pages_for(SlotCount slots, int64_t page_slots) {
  return PageCount((slots.value + page_slots - 1) / page_slots);
}

}  // namespace kvattn
