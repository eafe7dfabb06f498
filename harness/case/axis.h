// Purpose: what a plugin may offer or not, as a list of axes, each with the smallest case shape
// that needs it: a worker asks the plugin, and the generator leaves out what is not offered.
// Contract: with_axis() differs from the plain case (one head of 64, fp16, causal) in one thing.
// The order of the axes is part of what a worker says, and stable.
// Example: if (!offered.has(Axis::kSinks)) c.shape.sinks = false;
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/case/case.h"

namespace kv {

enum class Axis : uint8_t {
  kBf16,
  kF32,
  kHeadDim80,
  kHeadDim96,
  kHeadDim128,
  kHeadDim256,
  kHeadDimOdd,  // an odd multiple of eight
  kGroups,      // several query heads for one K/V head
  kSoftcap,
  kAlibi,
  kSinks,
  kTopLeft,
  kWindowLeft,
  kWindowRight,
  kMaskPackedBits,
  kMaskBoolKeep,
  kMaskBoolBlock,
  kMaskAdditive,
  kPaddingHoles,
  kTree,
  kSplit,  // a forced split size
  kCacheE4m3,
  kCacheE5m2,
  kCacheI8,
  kScaleTensor,
  kScaleHead,
  kScaleToken,
  kScalePage,
  kRopeNeox,
  kRopeInterleaved,
  kRopePartial,
  kValueDim,  // K and V of different head dimension
  kLatent,    // V of 512 inside of K of 576
  kCascade,   // merges of states
  kEnd,       // not an axis: their number
};
inline constexpr size_t kAxisCount = static_cast<size_t>(Axis::kEnd);

/// "bf16", ...; for people.
std::string_view axis_name(Axis axis);

class AxisSet {
 public:
  static AxisSet all() { return AxisSet((uint64_t{1} << kAxisCount) - 1); }
  AxisSet() = default;
  explicit AxisSet(uint64_t bits) : bits_(bits) {}
  bool has(Axis axis) const { return bits_ >> static_cast<unsigned>(axis) & 1; }
  void add(Axis axis) { bits_ |= uint64_t{1} << static_cast<unsigned>(axis); }
  uint64_t bits() const { return bits_; }
  bool operator==(const AxisSet&) const = default;

 private:
  uint64_t bits_ = 0;
};

Case plain_case();
Case with_axis(Axis axis);

/// The same case with every setting (not operation) outside `offered` as the plain case has it.
void leave_out(const AxisSet& offered, Case& c);

}  // namespace kv
