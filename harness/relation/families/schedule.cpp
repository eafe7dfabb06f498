// Family schedule: another legal order of blocks and warps.
// Holds: the same bits of O, LSE and cache, where KV_PROMISE_DETERMINISTIC: what is free of races
// and of floating-point atomics cannot tell one order from another.
// Of: every case. A real GPU chooses its own order: there it is a repetition.
// Kills: none alone; kept because order-dependent sums without a race need atomics, which the
// production library does not use.
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  image.c.exec.schedule_seed ^= choices.bits64() | 1;
  return true;
}

}  // namespace

constexpr Relation schedule = {.name = "schedule",
                               .purpose = "another legal order of blocks and warps",
                               .finds = "order-dependent sums without a race",
                               .agreement = Agreement::kBits,
                               .promises = KV_PROMISE_DETERMINISTIC,
                               .same_cache = true,
                               .change = change};

}  // namespace kv::families
