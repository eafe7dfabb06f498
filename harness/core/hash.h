// Purpose: one hash of bytes, for digests that are written into cases, corpora and reports.
// Contract: XXH3 with 64 bits, seed 0; the same bytes give the same number on every machine. It is
// no defence against someone who wants a collision.
// Example: Hasher h; h.add_bytes(row); h.add(uint64_t{length}); std::string s = hex64(h.digest());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace kv {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add_bytes(std::span<const std::byte> bytes);
  void add_text(const std::string& text);
  /// The little-endian bytes of an integer. Structs are refused: their padding is arbitrary.
  template <class Integer>
  requires std::is_integral_v<Integer>
  void add(Integer value) { add_bytes(std::as_bytes(std::span<const Integer, 1>(&value, 1))); }
  /// The hash of all bytes added so far; more may follow.
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t hash_bytes(std::span<const std::byte> bytes);

/// Sixteen hexadecimal digits.
std::string hex64(uint64_t value);

}  // namespace kv
