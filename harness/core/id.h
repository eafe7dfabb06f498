// Purpose: indices of different things do not mix.
// Contract: a strong typedef over a fixed-width unsigned integer; explicit in and out, ordered,
// hashable. Arithmetic is deliberately absent: an index of a page is not a number of slots.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kv {

template <class Tag, class Integer = uint32_t>
struct Id {
  Integer value = 0;
  constexpr Id() = default;
  constexpr explicit Id(Integer v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using RequestId = Id<struct RequestTag>;  // index into Case's admitted requests, as named in JSON
using PageId = Id<struct PageTag>;        // physical page of the pool
using LayerId = Id<struct LayerTag>;
using HeadId = Id<struct HeadTag>;  // query head or key/value head, as the field says

}  // namespace kv

template <class Tag, class Integer>
struct std::hash<kv::Id<Tag, Integer>> {
  size_t operator()(kv::Id<Tag, Integer> id) const noexcept {
    return std::hash<Integer>{}(id.value);
  }
};
