// Family batch_order: the rows of every step in another order.
// Holds: the same bits for each request, where KV_PROMISE_BATCH and KV_PROMISE_PAGE: a row's index
// is an address (and other pages fall to it), not an operand.
// Of: cases in which some step has two rows.
// Kills: none alone; kept because it alone looks at a row's index within the error bound.
#include <algorithm>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"
#include "harness/relation/families/steps.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  bool changed = false;
  for_each_step(image.c, [&](op::Step& step) {
    if (step.rows.size() < 2) return;
    const auto by = static_cast<ptrdiff_t>(choices.between(1, step.rows.size() - 1));
    std::rotate(step.rows.begin(), step.rows.begin() + by, step.rows.end());
    changed = true;
  });
  return changed;
}

}  // namespace

constexpr Relation batch_order = {
    .name = "batch_order",
    .purpose = "the rows of every step in another order",
    .finds = "a result that depends on a row's index in the batch, within its error bound",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_BATCH | KV_PROMISE_PAGE,
    .change = change};

}  // namespace kv::families
