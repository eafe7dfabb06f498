// Family layout: another order of page, slot and head in memory, or K and V interleaved with Q, K,
// V and O as views with gaps; strides say so, and nothing else does.
// Holds: the same bits, where KV_PROMISE_LAYOUT: strides say where a number lies, not what is
// summed with what. Elsewhere the reference judges both.
// Of: every case.
// Kills: 165_sums_by_layout
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  constexpr CacheLayout kAll[] = {CacheLayout::kSlotHead, CacheLayout::kHeadSlot,
                                  CacheLayout::kInterleaved};
  const auto now = static_cast<uint64_t>(image.c.pool.layout);
  image.c.pool.layout = kAll[(now + choices.between(1, 2)) % 3];
  return true;
}

}  // namespace

constexpr Relation layout = {
    .name = "layout",
    .purpose =
        "[page][slot][head], [page][head][slot], or K and V interleaved with Q, K, V and O "
        "as views, all as strides",
    .finds = "a stride that is assumed instead of read",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_LAYOUT,
    .change = change};

}  // namespace kv::families
