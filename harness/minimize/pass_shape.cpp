// What only changes together: heads, head dimensions, pages, lengths by whole pages.
#include <algorithm>
#include <bit>
#include <map>

#include "harness/case/limits.h"
#include "harness/case/timeline.h"
#include "harness/minimize/passes.h"

namespace kv {
namespace {

// The fewest pages with which the case is still lawful; found without running anything.
void fit_pages(Case& c) {
  uint32_t low = 0, high = c.pool.page_count;
  while (high - low > 1) {
    c.pool.page_count = low + (high - low) / 2;
    (Timeline::create(c).ok() ? high : low) = c.pool.page_count;
  }
  c.pool.page_count = high;
}

bool take_fitted(Shrinker& shrinker, Case c) {
  fit_pages(c);
  return shrinker.take(std::move(c));
}

// Calls change(slots before the row, row) for every row, with running counts for each request.
template <class Change>
void for_each_row(Case& c, Change change) {
  std::map<RequestId, uint64_t> lengths;
  for (Op& operation : c.ops) {
    auto* step = std::get_if<op::Step>(&operation);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      op::StepRow& row = step->rows[r];
      uint64_t& length = lengths[row.request];
      const uint64_t before = length;
      length += uint64_t{row.pad_left} + row.append + row.pad_right;
      change(before, row);
    }
  }
}

// A length in pages of another size with the same place in its last page: its first slot, its last
// one, or as far inside as the new page allows.
uint64_t in_pages(uint64_t length, uint32_t from, uint32_t to) {
  const uint64_t whole = length / from, rest = length % from;
  if (rest + 1 == from) return (whole + 1) * to - 1;
  return whole * to + std::min<uint64_t>(rest, to > 1 ? to - 1 : 0);
}

Case with_page_slots(const Case& from, uint32_t page_slots) {
  Case c = from;
  const uint32_t old = from.pool.page_slots;
  c.pool.page_slots = page_slots;
  for_each_row(c, [&](uint64_t before, op::StepRow& row) {
    const uint64_t padding = uint64_t{row.pad_left} + row.pad_right;
    const uint64_t after = before + padding + row.append;
    const uint64_t grown = in_pages(after, old, page_slots) - in_pages(before, old, page_slots);
    const bool follows = row.queries == row.append && padding == 0;
    if (grown >= padding && row.append > 0) row.append = static_cast<uint32_t>(grown - padding);
    if (follows) row.queries = row.append;
  });
  return c;
}

}  // namespace

void shrink_heads(Shrinker& shrinker) {
  constexpr uint32_t kSmall = 4;
  const Shape& shape = shrinker.best().shape;
  for (uint32_t sum = 2; sum < shape.query_heads + shape.kv_heads; ++sum) {
    for (uint32_t kv_heads = 1; kv_heads <= std::min(sum / 2, kSmall); ++kv_heads) {
      const uint32_t query_heads = sum - kv_heads;
      if (query_heads % kv_heads != 0 || query_heads > kSmall * kSmall) continue;
      Case c = shrinker.best();
      c.shape.query_heads = query_heads;
      c.shape.kv_heads = kv_heads;
      if (shrinker.take(std::move(c)) || shrinker.spent()) return;
    }
  }
}

void shrink_dimensions(Shrinker& shrinker) {
  for (const uint32_t dim : {1u, 2u, 4u, 8u, 16u, 24u, 32u, 40u, 48u, 64u, 80u, 96u, 128u, 192u}) {
    Case c = shrinker.best();
    if (dim >= std::max(c.shape.head_dim_k, c.shape.head_dim_v)) return;
    const uint32_t not_turned = c.shape.head_dim_k - c.shape.rope.dims;
    c.shape.head_dim_k = std::min(dim, c.shape.head_dim_k);
    c.shape.head_dim_v = std::min(dim, c.shape.head_dim_v);
    c.shape.rope.dims = std::min(dim / 2 * 2, c.shape.rope.dims);
    if (shrinker.take(c) || shrinker.spent()) return;
    // A fault behind the turned dimensions needs some that are not.
    if (c.shape.rope.dims > 0 && not_turned > 0 && not_turned < dim) {
      Case partial = c;
      partial.shape.rope.dims = (dim - not_turned) / 2 * 2;
      if (shrinker.take(std::move(partial))) return;
    }
    // A narrow row makes a kernel look further ahead; there must be something to look at.
    c.pool.page_slots = std::max(c.pool.page_slots, 64u);
    if (shrinker.take(std::move(c))) return;
  }
}

void shrink_pages(Shrinker& shrinker) {
  take_fitted(shrinker, shrinker.best());
  for (uint32_t slots = 1; slots < shrinker.best().pool.page_slots; slots *= 2) {
    if (take_fitted(shrinker, with_page_slots(shrinker.best(), slots)) || shrinker.spent()) return;
    Case c = shrinker.best();
    c.pool.page_slots = slots;
    c.pool.page_count = std::min<uint32_t>(c.pool.page_count * 256, limits::kPageCountMax);
    if (take_fitted(shrinker, std::move(c))) return;
  }
}

// The same lengths in fewer, larger pages: a table of one page says that pages do not matter.
void merge_pages(Shrinker& shrinker) {
  uint64_t slots = 0;
  Case counted = shrinker.best();
  for_each_row(counted, [&slots](uint64_t, op::StepRow& row) {
    slots += uint64_t{row.pad_left} + row.append + row.pad_right;
  });
  const uint64_t most = std::min<uint64_t>(std::bit_ceil(slots), limits::kPageSlotsMax);
  for (auto size = static_cast<uint32_t>(most); size > shrinker.best().pool.page_slots; size /= 2) {
    Case c = shrinker.best();
    c.pool.page_slots = size;
    if (take_fitted(shrinker, std::move(c)) || shrinker.spent()) return;
  }
}

// Bisection on single lengths loses what matters of them, their place in the page; this keeps it.
void shrink_lengths_by_pages(Shrinker& shrinker) {
  const uint32_t page = shrinker.best().pool.page_slots;
  size_t rows = 0;
  Case counted = shrinker.best();
  for_each_row(counted, [&rows](uint64_t, const op::StepRow&) { ++rows; });
  for (size_t target = 0; target < rows; ++target) {
    for (uint32_t pages = 1u << 12; pages > 0 && !shrinker.spent(); pages /= 2) {
      Case c = shrinker.best();
      size_t at = 0;
      for_each_row(c, [&](uint64_t, op::StepRow& row) {
        if (at++ != target || row.append < uint64_t{pages} * page) return;
        const bool follows = row.queries == row.append;
        row.append -= pages * page;
        if (follows) row.queries = row.append;
      });
      if (!(c == shrinker.best())) take_fitted(shrinker, std::move(c));
    }
  }
  // Prompt and queries together, slot by slot: the tail of a prefill.
  for (size_t target = 0; target < rows; ++target) {
    for (uint32_t slots = page; slots > 0 && !shrinker.spent();) {
      Case c = shrinker.best();
      size_t at = 0;
      for_each_row(c, [&](uint64_t, op::StepRow& row) {
        if (at++ != target || row.append <= slots || row.queries <= slots) return;
        row.append -= slots;
        row.queries -= slots;
      });
      if (c == shrinker.best() || !take_fitted(shrinker, std::move(c))) slots /= 2;
    }
  }
}

}  // namespace kv
