// Family history: after another request that ran and was cancelled, so that pages are recycled and
// the kernels have run before.
// Holds: the same bits, where KV_PROMISE_DETERMINISTIC and KV_PROMISE_PAGE: what a page or buffer
// held before is gone, and other pages may fall to the requests.
// Of: every case.
// Kills: none alone; kept because it asks for recycled pages and buffers of cases that recycle
// none.
#include <algorithm>
#include <iterator>

#include "harness/case/pages.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"
#include "harness/relation/families/steps.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  const RequestId other = stranger(c);
  const auto prompt = static_cast<uint32_t>(choices.between(1, 100));
  const uint32_t queries = choices.pick<uint32_t>({prompt, 1});
  const auto needed = static_cast<uint32_t>(pages_for(prompt, c.pool.page_slots));
  c.pool.page_count = std::max(c.pool.page_count, needed);
  const Op before[] = {op::Admit{.request = other, .prompt_tokens = prompt},
                       op::Step{.rows = {{.request = other, .append = prompt, .queries = queries}}},
                       op::Cancel{.request = other}};
  c.ops.insert(c.ops.begin(), std::begin(before), std::end(before));
  return true;
}

}  // namespace

constexpr Relation history = {.name = "history",
                              .purpose = "after another request that ran and was cancelled",
                              .finds = "results that depend on what a recycled page or buffer held",
                              .agreement = Agreement::kBits,
                              .promises = KV_PROMISE_DETERMINISTIC | KV_PROMISE_PAGE,
                              .change = change};

}  // namespace kv::families
