// Family split_size: keys cut into splits of another size.
// Holds: the same bits, where KV_PROMISE_SPLIT. Elsewhere the reference judges both: sums in
// another order.
// Of: cases to which another size can be given.
// Kills: 157_promises_splits
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  const uint32_t before = image.c.exec.split_slots, page = image.c.pool.page_slots;
  image.c.exec.split_slots = choices.pick<uint32_t>({16, 1, page, 33, 4096});
  return image.c.exec.split_slots != before;
}

}  // namespace

constexpr Relation split_size = {
    .name = "split_size",
    .purpose = "keys cut into splits of another size",
    .finds = "ghost splits, a sink or maximum for each split; nothing else draws splits",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_SPLIT,
    .change = change};

}  // namespace kv::families
