#include "impl/dispatch/variants.h"

#include <algorithm>

namespace kvattn {
namespace {

constexpr auto kReference = &AttendLaunchers::reference;
constexpr auto kDecode = &AttendLaunchers::decode;
constexpr auto kPrefill = &AttendLaunchers::prefill;
constexpr auto kInvariant = &AttendLaunchers::invariant;
constexpr auto kLatent = &AttendLaunchers::latent;

constexpr ChosenIn kInvariantOnly = ChosenIn::kInvariant;
constexpr int32_t kMany = std::numeric_limits<int32_t>::max();
constexpr QueryRange kOne = {1, 1}, kSeveral = {2, kMany}, kAny = {1, kMany}, kNone = {1, 0};
constexpr const char* kAnyText = "any number of queries";
constexpr const char* kOneText = "at most one query for each request";

// name, what it accepts, types, chosen for, accepts, launches
constexpr Variant kVariants[] = {
    {"decode_grouped",
     kOneText,
     Types::k16Bit,
     kOne,
     kOne,
     {{{kInvariant, kOne}}},
     ChosenIn::kThroughput},
    {"decode", kOneText, Types::kAny, kOne, kOne, {{{kDecode, kOne}}}},
    {"prefill", kAnyText, Types::k16Bit, kSeveral, kAny, {{{kPrefill, kAny}}}},
    {"mixed", kAnyText, Types::k16Bit, kAny, kAny, {{{kDecode, kOne}, {kPrefill, kSeveral}}}},
    {"mixed_fp32",
     kAnyText,
     Types::k32Bit,
     kAny,
     kAny,
     {{{kDecode, kOne}, {kReference, kSeveral}}}},
    {"reference", kAnyText, Types::kAny, kNone, kAny, {{{kReference, kAny}}}},
    {"invariant", kAnyText, Types::k16Bit, kAny, kAny, {{{kInvariant, kAny}}}, kInvariantOnly},
    {"invariant_fp32", kAnyText, Types::k32Bit, kAny, kAny, {{{kReference, kAny}}}, kInvariantOnly},
    {"latent", kAnyText, Types::k16Bit, kAny, kAny, {{{kLatent, kAny}}}, {}, Dims::kLatent},
    {"invariant_latent",
     kAnyText,
     Types::k16Bit,
     kAny,
     kAny,
     {{{kLatent, kAny}}},
     kInvariantOnly,
     Dims::kLatent},
};

template <class Wanted>
constexpr auto names_of(Wanted wanted) {
  std::array<const char*, std::size(kVariants) + 1> names = {};
  size_t count = 0;
  for (const Variant& variant : kVariants) {
    if (wanted(variant)) names[count++] = variant.name;
  }
  return names;
}

}  // namespace

std::span<const Variant> variants() { return kVariants; }

const char* const* variant_names() {
  static constexpr auto kNames = names_of([](const Variant&) { return true; });
  return kNames.data();
}

const char* const* invariant_variant_names() {
  static constexpr auto kNames = names_of([](const Variant& v) {
    return v.chosen_in == kInvariantOnly || v.launches[0].kernel == kReference;
  });
  return kNames.data();
}

KernelProfile kernel_profile(Kernel kernel, const AttentionShape& shape) {
  const int64_t widest = std::max(shape.head_dim, shape.dim_of_value());
  if (kernel == kPrefill) return {mma_tile_slots(widest), true, true, 1};
  if (kernel == kInvariant) return {mma_tile_slots(widest), false, true, 1};
  if (kernel == kLatent) return {kLatentTileSlots, false, true, 1};
  if (kernel == kDecode) return {kWarpTileSlots, false, false, kDecodeWarps};
  return {kWarpTileSlots, true, false, 1};
}

}  // namespace kvattn
