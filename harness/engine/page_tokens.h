// Purpose: what a published prefix holds: the tokens of a page, shared by all states of an engine
// in which they occur, and a page of each group. Contract: tokens never change. A number other than
// 0 tells them from all others of one engine under judgement: equal numbers, equal tokens. Copies
// of tokens, and of pages of few groups, take no memory of their own: a state may have tens of
// thousands. Example:  const PageTokens tokens({1, 2, 3, 4});  const GroupPages pages({7});
#pragma once

#include <algorithm>
#include <array>
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

class GroupPages {
 public:
  GroupPages() = default;
  GroupPages(std::initializer_list<int32_t> pages) { assign({pages.begin(), pages.size()}); }
  GroupPages(size_t groups, int32_t page) { assign(std::vector<int32_t>(groups, page)); }

  void assign(std::span<const int32_t> pages) {
    size_ = pages.size();
    if (size_ > few_.size()) {
      many_.assign(pages.begin(), pages.end());
    } else {
      std::ranges::copy(pages, few_.begin());
    }
  }
  void clear() { assign({}); }
  size_t size() const { return size_; }
  std::span<const int32_t> all() const {
    return {size_ > few_.size() ? many_.data() : few_.data(), size_};
  }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  int32_t operator[](size_t group) const { return all()[group]; }
  void set(size_t group, int32_t page) {
    (size_ > few_.size() ? many_.data() : few_.data())[group] = page;
  }
  bool operator==(const GroupPages& other) const { return std::ranges::equal(all(), other.all()); }

 private:
  size_t size_ = 0;
  std::array<int32_t, 2> few_ = {};
  std::vector<int32_t> many_;
};

}  // namespace kv
