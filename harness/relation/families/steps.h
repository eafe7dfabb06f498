// Purpose: what families that change who runs with whom have in common.
// Contract: for lawful cases; what they make of them is lawful.
// Example:  for_each_step(c, [](op::Step& step) { std::reverse(step.rows.begin(), ...); });
#pragma once

#include <algorithm>

#include "harness/case/case.h"

namespace kv::families {

template <class Visit>
void for_each_step(Case& c, Visit visit) {
  for (Op& op : c.ops)
    if (auto* step = std::get_if<op::Step>(&op)) visit(*step);
}

/// A request that the case does not have.
inline RequestId stranger(const Case& c) {
  uint32_t next = 0;
  for (const Op& op : c.ops)
    if (const auto* admit = std::get_if<op::Admit>(&op))
      next = std::max(next, admit->request.value + 1);
  return RequestId(next);
}

/// Room for so many slots more.
inline void add_pages(Case& c, uint64_t slots) {
  c.pool.page_count += static_cast<uint32_t>(slots / c.pool.page_slots + 1);
}

}  // namespace kv::families
