#include "harness/gen/odometer.h"

#include "harness/core/check.h"

namespace kv {

uint64_t Odometer::below(uint64_t bound) {
  KV_CHECK(bound >= 1, "a choice among nothing");
  if (used_ == digits_.size()) digits_.push_back({0, bound});
  KV_CHECK(digits_[used_].bound == bound, "the same choices ask the same questions");
  return digits_[used_++].value;
}

bool Odometer::next() {
  digits_.resize(used_);
  used_ = 0;
  while (!digits_.empty()) {
    if (++digits_.back().value < digits_.back().bound) return true;
    digits_.pop_back();
  }
  return false;
}

}  // namespace kv
