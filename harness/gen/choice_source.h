// Purpose: where the generator's decisions come from: random numbers, fuzzer bytes, a recorded
// list. Contract: below(n) answers with an integer in [0, n) for every n >= 1, for ever: a source
// that has run out goes on with zeros. Every sequence of answers is a valid case, and all zeros is
// the simplest one, so whoever shrinks a sequence shrinks the case. Example:
//   PhiloxSource choices(seed, index);
//   Case c = draw(choices);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/philox.h"

namespace kv {

/// What the next choices decide. A source may keep a stream of its own for each part (and for each
/// operation), so that a change in one leaves what the others say.
enum class Part : uint8_t {
  kSwarm,
  kShape,
  kPool,
  kMask,
  kData,
  kExec,
  kRelation,
  kOperation,  // one of the operations: the first, then the second, ...
};

class ChoiceSource {
 public:
  virtual ~ChoiceSource() = default;
  virtual uint64_t below(uint64_t bound) = 0;
  /// The generator comes to this part; what it chose before is decided.
  virtual void enter(Part) {}

  /// An integer in [low, high]; low for zero.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  /// True in `of` - 1 of ... one of `of` cases; false for zero.
  bool one_in(uint64_t of) { return below(of) == of - 1; }
  /// One of the listed; the first for zero, so list the simplest first. Repeat one to weigh it.
  template <class T>
  T pick(std::initializer_list<T> items) {
    return items.begin()[below(items.size())];
  }
  uint64_t bits64() {
    const uint64_t high = below(uint64_t{1} << 32);
    return high << 32 | below(uint64_t{1} << 32);
  }
};

/// Independent streams of random choices: the `index`-th case of a campaign with this seed.
class PhiloxSource final : public ChoiceSource {
 public:
  PhiloxSource(uint64_t seed, uint64_t index) : philox_{seed}, index_(index) {}
  uint64_t below(uint64_t bound) override;

 private:
  Philox philox_;
  uint64_t index_;
  uint64_t used_ = 0;
};

/// A fuzzer's bytes: a choice among n takes as many bytes as n - 1 has, so a mutation of one byte
/// changes one choice. Zeros after the end.
class BytesSource final : public ChoiceSource {
 public:
  explicit BytesSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t below(uint64_t bound) override;

 private:
  std::span<const uint8_t> bytes_;
};

/// A list of choices, each taken modulo its bound. Zeros after the end.
class ListSource final : public ChoiceSource {
 public:
  explicit ListSource(std::vector<uint64_t> choices) : choices_(std::move(choices)) {}
  uint64_t below(uint64_t bound) override;

 private:
  std::vector<uint64_t> choices_;
  size_t used_ = 0;
};

}  // namespace kv
