// Where bytes lie, what lies beside them, when work runs: nothing of it may matter.
#include <algorithm>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families.h"

namespace kv {
namespace {

bool other_pages(ChoiceSource& choices, Image& image) {
  Pool& pool = image.c.pool;
  const PageOrder before = pool.order;
  const uint32_t slack = choices.pick<uint32_t>({1, 3, pool.page_count});
  pool.order = choices.pick({PageOrder::kReversed, PageOrder::kShuffled, PageOrder::kIdentity});
  // Far pages cost 4 GiB of addresses each.
  if (before != PageOrder::kFarApart) pool.page_count += slack;
  return true;
}

bool other_layout(ChoiceSource& choices, Image& image) {
  constexpr CacheLayout kAll[] = {CacheLayout::kSlotHead, CacheLayout::kHeadSlot,
                                  CacheLayout::kInterleaved};
  const auto now = static_cast<uint64_t>(image.c.pool.layout);
  image.c.pool.layout = kAll[(now + choices.between(1, 2)) % 3];
  return true;
}

bool other_poison(ChoiceSource& choices, Image& image) {
  constexpr Poison kAll[] = {Poison::kUndefined, Poison::kFiniteHuge, Poison::kNan};
  const auto now = static_cast<uint64_t>(image.c.pool.poison);
  image.c.pool.poison = kAll[(now + choices.between(1, 2)) % 3];
  return true;
}

bool other_schedule(ChoiceSource& choices, Image& image) {
  image.c.exec.schedule_seed ^= choices.bits64() | 1;
  return true;
}

/// Launched twice, so that the second time nothing of the plugin's host code runs before it.
bool from_graph(ChoiceSource&, Image& image) {
  image.c.exec.graph = true;
  image.c.exec.repeat = std::max(image.c.exec.repeat, 2u);
  return true;
}

bool the_same_again(ChoiceSource&, Image&) { return true; }

constexpr Relation kRelations[] = {
    {.name = "pages",
     .purpose = "the same slots in other physical pages",
     .finds = "a page number taken where a page index belongs, when the other page's bytes are "
              "valid",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_PAGE,
     .change = other_pages},
    {.name = "layout",
     .purpose = "[page][slot][head], [page][head][slot], or K and V interleaved with Q, K, V and O "
                "as views, all as strides",
     .finds = "a stride that is assumed instead of read",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_LAYOUT,
     .change = other_layout},
    {.name = "poison",
     .purpose = "other bytes in all that must not matter: unused slots and pages, table tails, "
                "outputs and workspace before the call",
     .finds = "bytes that a device without an undefined-data check would let through",
     .agreement = Agreement::kBits,
     .promises = 0,
     .change = other_poison},
    {.name = "schedule",
     .purpose = "another legal order of blocks and warps",
     .finds = "order-dependent sums without a race",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_DETERMINISTIC,
     .same_cache = true,
     .change = other_schedule},
    {.name = "call_again",
     .purpose = "the same calls once more in the same process, with whatever the first left behind",
     .finds = "state that a call leaves in the module or the library",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_DETERMINISTIC,
     .same_cache = true,
     .change = the_same_again},
    {.name = "graph",
     .purpose = "the calls captured into a graph, which is launched twice",
     .finds = "work that a call does on the host or on another stream, and a graph does not repeat",
     .agreement = Agreement::kBits,
     .promises = KV_PROMISE_GRAPH,
     .same_cache = true,
     .change = from_graph},
};

}  // namespace

std::span<const Relation> pool_relations() { return kRelations; }

}  // namespace kv
