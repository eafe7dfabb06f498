// Purpose: bytes that an observation, the judge's image of the cache and what is kept of a run hold
// together, so that a page is copied out of a worker's message once.
// Contract: read only once made; a part keeps the whole alive. Equal when the bytes are.
// Example:  SharedBytes page = SharedBytes::part_of(message, {offset, size});
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kv {

class SharedBytes {
 public:
  using Whole = std::shared_ptr<const std::vector<std::byte>>;

  SharedBytes() = default;
  SharedBytes(std::vector<std::byte> bytes)  // NOLINT: a vector is what it is made of
      : whole_(std::make_shared<const std::vector<std::byte>>(std::move(bytes))), bytes_(*whole_) {}
  /// `part` lies in `whole`.
  static SharedBytes part_of(Whole whole, std::span<const std::byte> part) {
    SharedBytes shared;
    shared.whole_ = std::move(whole);
    shared.bytes_ = part;
    return shared;
  }

  size_t size() const { return bytes_.size(); }
  const std::byte* data() const { return bytes_.data(); }
  auto begin() const { return bytes_.begin(); }
  auto end() const { return bytes_.end(); }
  const std::byte& operator[](size_t i) const { return bytes_[i]; }
  std::span<const std::byte> span() const { return bytes_; }
  /// Bytes of its own, as `change` leaves a vector of these.
  template <class Change>
  void edit(Change change) {
    std::vector<std::byte> bytes(begin(), end());
    change(bytes);
    *this = std::move(bytes);
  }
  bool operator==(const SharedBytes& other) const {
    return std::ranges::equal(bytes_, other.bytes_);
  }

 private:
  Whole whole_;
  std::span<const std::byte> bytes_;
};

}  // namespace kv
