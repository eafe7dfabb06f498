// Family alone: one of the requests, alone; the others are admitted and end as before.
// Holds: the same bits for that request, where KV_PROMISE_BATCH and KV_PROMISE_PAGE. Where the case
// forces a variant, only of steps that ran the same one: a variant that one batch cannot take is
// not the plugin's choice by company.
// Of: cases in which a request has company, and none of whose rows needs another's.
// Kills: 149_split_by_batch, 150_kernel_by_company
#include <vector>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"
#include "harness/relation/families/steps.h"

namespace kv::families {
namespace {

bool change(ChoiceSource& choices, Image& image) {
  std::vector<RequestId> attending;
  for_each_step(image.c, [&](op::Step& step) {
    for (const op::StepRow& row : step.rows)
      if (row.queries > 0) attending.push_back(row.request);
  });
  if (attending.empty()) return false;
  const RequestId kept = attending[choices.below(attending.size())];
  bool changed = false;
  for_each_step(image.c, [&](op::Step& step) {
    changed |=
        std::erase_if(step.rows, [kept](const op::StepRow& r) { return r.request != kept; }) > 0;
  });
  std::erase_if(image.c.ops, [](const Op& op) {
    const auto* step = std::get_if<op::Step>(&op);
    return step != nullptr && step->rows.empty();
  });
  return changed;
}

}  // namespace

constexpr Relation alone = {.name = "alone",
                            .purpose = "one of the requests, alone",
                            .finds = "a kernel or split size that the company chooses",
                            .agreement = Agreement::kBits,
                            .promises = KV_PROMISE_BATCH | KV_PROMISE_PAGE,
                            .change = change};

}  // namespace kv::families
