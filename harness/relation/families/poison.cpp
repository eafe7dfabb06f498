// Family poison: other bytes (NaN, huge and finite, undefined) in all that must not matter: unused
// slots and pages, tails of tables, outputs, LSE and workspace before the call.
// Holds: the same bits, of a plugin that is deterministic: nothing that it may read differs. One
// that is not has other bits for no reason, and the reference judges both.
// Of: every case.
// Kills: none alone; kept because on a GPU nothing else finds undefined data.
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  constexpr Poison kAll[] = {Poison::kUndefined, Poison::kFiniteHuge, Poison::kNan};
  const auto now = static_cast<uint64_t>(image.c.pool.poison);
  image.c.pool.poison = kAll[(now + choices.between(1, 2)) % 3];
  return true;
}

}  // namespace

constexpr Relation poison = {
    .name = "poison",
    .purpose =
        "other bytes in all that must not matter: unused slots and pages, table tails, "
        "outputs and workspace before the call",
    .finds = "bytes that a device without an undefined-data check would let through",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_DETERMINISTIC,
    .change = change};

}  // namespace kv::families
