// Purpose: integers, strings and blobs to bytes and back, between kverify and its workers.
// Contract: host byte order (both ends are the same program on the same machine). The reader trusts
// nothing: a length that exceeds what is left makes it fail, once and for good; after a failure
// every read gives zero or empty. Check ok() before the values are used.
// Example: ByteWriter w; w.number<uint32_t>(7); w.text("abc");
//          ByteReader r(w.bytes()); uint32_t n = r.number<uint32_t>(); if (!r.ok()) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/plugin/text.h"

namespace kv {

class ByteWriter {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void number(std::type_identity_t<Number> value) { raw(&value, sizeof value); }
  void blob(std::span<const std::byte> bytes) {
    number<uint64_t>(bytes.size());
    raw(bytes.data(), bytes.size());
  }
  void text(std::string_view text) { blob(std::as_bytes(std::span(text))); }

  void reserve(size_t bytes) { bytes_.reserve(bytes); }

  const std::vector<std::byte>& bytes() const& { return bytes_; }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  /// All bytes were used and none was missing.
  bool complete() const { return ok_ && rest_.empty(); }

  template <class Number>
  requires std::is_arithmetic_v<Number> Number number() {
    if constexpr (std::is_same_v<Number, bool>) {
      return number<uint8_t>() != 0;  // any other byte would be no bool
    } else {
      Number value = 0;
      const auto bytes = take(sizeof value);
      if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
      return value;
    }
  }
  /// An enumerator from 0 to `last`; anything else is a failure.
  template <class Enum>
  Enum enumerator(Enum last) {
    using Index = std::make_unsigned_t<std::underlying_type_t<Enum>>;
    const auto value = number<Index>();
    if (value > static_cast<Index>(last)) ok_ = false;
    return ok_ ? static_cast<Enum>(value) : Enum{};
  }
  std::span<const std::byte> blob() { return take(number<uint64_t>()); }
  /// Printable text, cut at `bytes_max`.
  std::string text(size_t bytes_max = 4096) {
    const auto bytes = blob();
    return printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, bytes_max);
  }
  /// How many elements follow; each occupies at least `element_bytes_min` of what is left.
  uint64_t count(uint64_t element_bytes_min) {
    const auto value = number<uint64_t>();
    if (value > rest_.size() / element_bytes_min) ok_ = false;
    return ok_ ? value : 0;
  }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace kv
