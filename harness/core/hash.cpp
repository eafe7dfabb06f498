#include "harness/core/hash.h"

#include <xxhash.h>

#include "harness/core/check.h"

namespace kv {

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  KV_CHECK(state_->xxh != nullptr, "out of memory");
  XXH3_64bits_reset(state_->xxh);
}

Hasher::~Hasher() = default;

void Hasher::add_bytes(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Hasher::add_text(const std::string& text) {
  add_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

uint64_t Hasher::digest() const { return XXH3_64bits_digest(state_->xxh); }

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hex64(uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace kv
