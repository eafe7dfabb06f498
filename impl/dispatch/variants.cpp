#include "impl/dispatch/variants.h"

namespace kvattn {
namespace {

constexpr int32_t kAnyLength = std::numeric_limits<int32_t>::max();
constexpr auto kReference = &AttendLaunchers::reference;
constexpr auto kDecode = &AttendLaunchers::decode;

constexpr Variant kVariants[] = {
    {.name = "decode",
     .accepts = "at most one query for each request",
     .query_length_min = 0,
     .query_length_max = 1,
     .launches = {{{kDecode, 1, 1}}},
     .tile_slots = kWarpTileSlots,
     .ascending = 0,
     .splits = kDecodeWarps},
    {.name = "mixed",
     .accepts = "any number of queries",
     .query_length_min = 0,
     .query_length_max = kAnyLength,
     .launches = {{{kDecode, 1, 1}, {kReference, 2, kAnyLength}}},
     .tile_slots = kWarpTileSlots,
     .ascending = 0,
     .splits = kDecodeWarps},
    {.name = "reference",
     .accepts = "any number of queries",
     .query_length_min = 0,
     .query_length_max = kAnyLength,
     .launches = {{{kReference, 1, kAnyLength}}},
     .tile_slots = kWarpTileSlots,
     .ascending = 1,
     .splits = 1},
};

}  // namespace

std::span<const Variant> variants() { return kVariants; }

}  // namespace kvattn
