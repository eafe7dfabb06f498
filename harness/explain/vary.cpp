#include "harness/explain/vary.h"

#include <cmath>

#include "harness/case/timeline.h"
#include "harness/gen/choice_source.h"

namespace kv {
namespace {

constexpr uint64_t kStream = 0x6578706c61696e;  // "explain"
constexpr uint32_t kPages = 256;

// Cases of the minimiser have numbers so plain that half of the catalogue gives the same output.
void vary_numbers(ChoiceSource& choices, Case& c) {
  c.data.design = Design::kNormal;
  c.data.seed = choices.bits64();
  c.data.digest.reset();
  c.data.overrides.clear();
  const double root = std::sqrt(double{1} * c.shape.head_dim_k);
  c.shape.scale = static_cast<float>(choices.pick({1.0, 0.7, 1.5}) / root);
  const uint32_t group = c.shape.query_heads / c.shape.kv_heads;
  c.shape.kv_heads += static_cast<uint32_t>(choices.below(3));
  c.shape.query_heads = group * c.shape.kv_heads;
}

// A window of one key hides what the others would tell.
void vary_window(ChoiceSource& choices, Mask& mask) {
  for (int64_t* side : {&mask.window_left, &mask.window_right}) {
    if (*side >= 0) *side += static_cast<int64_t>(choices.below(12));
  }
}

}  // namespace

std::optional<Case> varied(const Case& from, uint32_t index) {
  PhiloxSource choices(kStream, index);
  Case c = from;
  vary_numbers(choices, c);
  if (index % 4 == 3) vary_window(choices, c.mask);
  if (c.pool.page_slots < 4) c.pool.page_slots = choices.pick({2u, 4u, 8u});
  c.pool.page_count = kPages;
  c.pool.order = PageOrder::kShuffled;
  for (Op& operation : c.ops) {
    auto* step = std::get_if<op::Step>(&operation);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      op::StepRow& row = step->rows[r];
      if (!row.tree_parents.empty()) continue;
      const bool follows = row.queries == row.append;
      const bool beyond = row.queries > row.append;
      row.append += static_cast<uint32_t>(choices.below(index % 2 == 0 ? 8 : 40));
      if (row.queries > 1) row.queries += static_cast<uint32_t>(choices.below(6));
      if (follows && row.queries > 1) row.queries = row.append;
      if (!beyond && row.queries > row.append) row.queries = row.append;
    }
  }
  if (!Timeline::create(c).ok()) return std::nullopt;
  return c;
}

}  // namespace kv
