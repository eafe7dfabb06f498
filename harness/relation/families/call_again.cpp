// Family call_again: the same calls once more in the same process.
// Holds: the same bits of O, LSE and cache, where KV_PROMISE_DETERMINISTIC: memory is new and
// poisoned again, so that only what the first calls left in the module or library could tell.
// Of: every case.
// Kills: none alone; kept because other cases run in new shapes, where what is left rarely matters.
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource&, Image&) { return true; }

}  // namespace

constexpr Relation call_again = {
    .name = "call_again",
    .purpose = "the same calls once more in the same process, with whatever the first left behind",
    .finds = "state that a call leaves in the module or the library",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_DETERMINISTIC,
    .same_cache = true,
    .change = change};

}  // namespace kv::families
