// Family company: one more request in every step, which the case did not have.
// Holds: the same bits for the requests of the case, where KV_PROMISE_BATCH and KV_PROMISE_PAGE.
// Of: cases with a step.
// Kills: none alone; kept because it is what relation alone says, for cases of one request.
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"
#include "harness/relation/families/steps.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const RequestId other = stranger(c);
  const auto prompt = static_cast<uint32_t>(choices.between(1, 80));
  uint32_t slots = 0;
  for_each_step(c, [&](op::Step& step) {
    const uint32_t append = slots == 0 ? prompt : 1;
    const auto at = static_cast<ptrdiff_t>(choices.below(step.rows.size() + 1));
    step.rows.insert(step.rows.begin() + at,
                     {.request = other, .append = append, .queries = append});
    slots += append;
  });
  add_pages(c, slots);
  c.ops.insert(c.ops.begin(), op::Admit{.request = other, .prompt_tokens = prompt});
  return slots > 0;
}

}  // namespace

constexpr Relation company = {
    .name = "company",
    .purpose = "one more request in every step",
    .finds = "a kernel or split size that the company chooses, for cases of one request",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_BATCH | KV_PROMISE_PAGE,
    .change = change};

}  // namespace kv::families
