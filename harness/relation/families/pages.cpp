// Family pages: the same slots in other physical pages, in a pool of another size.
// Holds: the same bits of O and LSE, where KV_PROMISE_PAGE: a page number says where bytes lie, and
// no arithmetic may follow it. Elsewhere the reference judges both.
// Of: every case; pages that lie 4 GiB apart get no company, which would cost addresses.
// Kills: 164_sums_by_page_parity
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  Pool& pool = image.c.pool;
  const PageOrder before = pool.order;
  const uint32_t slack = choices.pick<uint32_t>({1, 3, pool.page_count});
  pool.order = choices.pick({PageOrder::kReversed, PageOrder::kShuffled, PageOrder::kIdentity});
  if (before != PageOrder::kFarApart) pool.page_count += slack;
  return true;
}

}  // namespace

constexpr Relation pages = {
    .name = "pages",
    .purpose = "the same slots in other physical pages",
    .finds =
        "a page number taken where a page index belongs, when the other page's bytes are "
        "valid",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_PAGE,
    .change = change};

}  // namespace kv::families
