// Purpose: the tokens of a published page, shared by all states of an engine in which they occur.
// Contract: they never change. A number other than 0 tells them from all others of one engine
// under judgement: equal numbers, equal tokens. Copies cost no memory.
// Example:  const PageTokens tokens({1, 2, 3, 4});
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace kv {

class PageTokens {
 public:
  PageTokens() = default;
  PageTokens(std::vector<uint64_t> tokens, uint64_t number)
      : shared_(std::make_shared<const Shared>(Shared{std::move(tokens), number})) {}
  PageTokens(std::initializer_list<uint64_t> tokens)
      : PageTokens(std::vector<uint64_t>(tokens), 0) {}
  PageTokens& operator=(std::vector<uint64_t> tokens) {
    return *this = PageTokens(std::move(tokens), 0);
  }

  std::span<const uint64_t> all() const {
    return shared_ ? std::span<const uint64_t>(shared_->tokens) : std::span<const uint64_t>();
  }
  size_t size() const { return all().size(); }
  uint64_t number() const { return shared_ ? shared_->number : 0; }
  bool operator==(const PageTokens& other) const {
    return shared_ == other.shared_ || std::ranges::equal(all(), other.all());
  }

 private:
  struct Shared {
    std::vector<uint64_t> tokens;
    uint64_t number;
  };
  std::shared_ptr<const Shared> shared_;
};

}  // namespace kv
