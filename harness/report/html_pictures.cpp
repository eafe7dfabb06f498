#include "harness/report/html_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/case/mask_bits.h"
#include "reference/visible.h"

namespace kv {
namespace {

struct Part {
  size_t begin = 0, end = 0;
};
/// At most `count` of [0, size), around `at`.
Part around(int64_t at, size_t size, size_t count) {
  count = std::min(count, size);
  const size_t middle = at < 0 ? 0 : static_cast<size_t>(at);
  const size_t begin = std::min(middle > count / 2 ? middle - count / 2 : 0, size - count);
  return {begin, begin + count};
}

std::string note_of(const char* what, Part shown, size_t all) {
  if (shown.end - shown.begin == all) return "";
  return fmt::format("{} {} to {} of {} drawn. ", what, shown.begin, shown.end - 1, all);
}

enum MaskKind : uint8_t { kHidden, kVisible, kPad, kOutsideWindow, kMasked, kAdded, kLost, kTwice };

}  // namespace

std::optional<Moment> moment_of(const Case& c, const Verdict& verdict) {
  Moment m;
  m.c = std::make_unique<const Case>(c);
  auto timeline = Timeline::create(*m.c);
  if (!timeline.ok() || c.ops.empty()) return std::nullopt;
  m.timeline.emplace(std::move(timeline).value());
  const Divergence* d = verdict.divergence ? &*verdict.divergence : nullptr;
  if (d != nullptr && d->op_index < c.ops.size()) {
    m.op_index = d->op_index;
  } else {
    for (uint32_t i = 0; i < c.ops.size(); ++i)
      if (std::holds_alternative<op::Step>(c.ops[i])) m.op_index = i;
  }
  for (uint32_t i = 0; i <= m.op_index; ++i) m.step = m.timeline->apply(i);
  for (const PlannedRow& row : m.step.rows) {
    const bool wanted = d == nullptr || d->request < 0 || row.request.value == d->request;
    if (wanted && m.row == nullptr) m.row = &row;
  }
  if (m.row != nullptr && d != nullptr && d->request >= 0 && d->head >= 0)
    m.query = d->query_slot - query_slot(*m.row, 0);
  if (d != nullptr && d->head >= 0) m.head = static_cast<uint32_t>(d->head);
  return m;
}

Grid mask_grid(const Moment& m) {
  Grid g{.title = "The mask, as the reference sees it", .columns = "slot"};
  if (m.row == nullptr || m.row->queries == 0 || m.row->kv_length == 0) return g;
  const PlannedRow& row = *m.row;
  std::vector<uint8_t> real;
  for (const Slot& slot : m.timeline->sequence(row.request).slots) real.push_back(!slot.pad);
  real.resize(row.kv_length);
  const Mask& mask = m.c->mask;
  reference::MaskGeometry geometry{.causal = mask.causal,
                                   .window_left = mask.window_left,
                                   .window_right = mask.window_right,
                                   .queries = row.queries,
                                   .real = real,
                                   .append_slots = row.append_slots,
                                   .tree_parents = row.tree_parents};
  const int64_t query = m.query < 0 ? 0 : m.query;
  const auto [begin, end] = drawn_queries(m);
  const Part queries{begin, end};
  const Part slots =
      around(query_slot(row, static_cast<uint32_t>(query)), row.kv_length, kGridColumnsMax);
  g.kinds = {{"off", "hidden"},
             {"on", "visible"},
             {"pad", "PAD"},
             {"outside", "out of the window"},
             {"masked", "hidden by the mask tensor"}};
  g.first_column = slots.begin;
  g.rule = m.c->pool.page_slots;
  g.note = note_of("query rows", queries, row.queries) + note_of("slots", slots, row.kv_length) +
           fmt::format("Request {}; lines are page edges.", row.request.value);
  for (size_t q = queries.begin; q < queries.end; ++q) {
    const auto at = static_cast<uint32_t>(q);
    geometry.window_left = mask.window_left;
    geometry.window_right = mask.window_right;
    const std::vector<uint8_t> visible = reference::visible_keys(geometry, at);
    geometry.window_left = geometry.window_right = -1;
    const std::vector<uint8_t> open = reference::visible_keys(geometry, at);
    const MaskRow tensor(*m.c, m.timeline->sequence(row.request), {.query = at, .head = m.head});
    GridRow out{.label = fmt::format("query {} at slot {}", q, query_slot(row, at)),
                .marked = static_cast<int64_t>(q) == m.query};
    for (size_t s = slots.begin; s < slots.end; ++s)
      out.cells.push_back(!real[s]      ? kPad
                          : !visible[s] ? (open[s] ? kOutsideWindow : kHidden)
                          : tensor.shows(static_cast<uint32_t>(s)) ? kVisible
                                                                   : kMasked);
    g.rows.push_back(std::move(out));
  }
  return g;
}

std::pair<uint32_t, uint32_t> drawn_queries(const Moment& m) {
  if (m.row == nullptr) return {0, 0};
  const Part part = around(m.query, m.row->queries, kGridRowsMax);
  return {static_cast<uint32_t>(part.begin), static_cast<uint32_t>(part.end)};
}

Grid kernel_mask_grid(const Moment& m, const KernelMask& kernel) {
  Grid g = mask_grid(m);
  g.title = "The mask, as the kernel sees it if the explanation holds";
  g.kinds.insert(g.kinds.end(), {{"added", "seen by the kernel alone"},
                                 {"lost", "not seen by the kernel"},
                                 {"added", "counted twice by the kernel"}});
  bool differs = false;
  const uint32_t first = drawn_queries(m).first;
  for (size_t r = 0; r < g.rows.size(); ++r) {
    const uint64_t q = first + r;
    if (q < kernel.first_query || q - kernel.first_query >= kernel.copies.size()) continue;
    const std::vector<uint32_t>& copies = kernel.copies[q - kernel.first_query];
    for (size_t i = 0; i < g.rows[r].cells.size() && g.first_column + i < copies.size(); ++i) {
      uint8_t& cell = g.rows[r].cells[i];
      const uint32_t n = copies[g.first_column + i];
      const uint8_t reference = cell;
      if (cell == kVisible)
        cell = n == 0 ? kLost : n == 1 ? kVisible : kTwice;
      else if (n > 0)
        cell = kAdded;
      differs |= cell != reference;
    }
  }
  if (!differs) g.rows.clear();
  return g;
}

Grid ownership_grid(const Moment& m) {
  constexpr size_t kColumns = 32;
  constexpr uint8_t kFree = 0, kMine = 1, kSharedMine = 2, kShared = 3, kFirstOther = 4;
  constexpr uint8_t kOthers = 6;  // colours; then they come again
  Grid g{.title = "Pages of the pool, and whose they are", .columns = "page, from the row's first"};
  g.kinds = {{"off", "free"},
             {"mine", "of the failing request"},
             {"minetoo", "of the failing request, shared"},
             {"shared", "shared by others"}};
  for (uint8_t i = 0; i < kOthers; ++i)
    g.kinds.push_back({fmt::format("owner{}", i), "of another request"});
  std::vector<uint8_t> owners(m.c->pool.page_count, kFree);
  uint32_t other = 0;
  for (const auto& [request, sequence] : m.timeline->sequences()) {
    const bool mine = m.row != nullptr && request == m.row->request;
    const auto colour = static_cast<uint8_t>(kFirstOther + other % kOthers);
    if (!mine && !sequence.pages.empty()) {
      const std::string name = fmt::format("of request {}", request.value);
      g.kinds[colour].name = other++ < kOthers ? name : g.kinds[colour].name + ", " + name;
    }
    for (const PageId page : sequence.pages) {
      if (page.value >= owners.size()) continue;
      uint8_t& owner = owners[page.value];
      const bool held_by_mine = owner == kMine || owner == kSharedMine;
      owner = owner == kFree         ? (mine ? kMine : colour)
              : mine || held_by_mine ? kSharedMine
                                     : kShared;
    }
  }
  for (GridKind& kind : g.kinds)
    if (kind.name.size() > 60) kind.name = kind.name.substr(0, 57) + "...";
  const size_t shown = std::min(owners.size(), kPoolPagesMax);
  for (size_t first = 0; first < shown; first += kColumns) {
    const size_t end = std::min(first + kColumns, shown);
    g.rows.push_back({.label = fmt::format("pages {}-{}", first, end - 1),
                      .cells = {owners.begin() + static_cast<ptrdiff_t>(first),
                                owners.begin() + static_cast<ptrdiff_t>(end)}});
  }
  if (shown < owners.size())
    g.note = fmt::format("the first {} of {} pages drawn", shown, owners.size());
  return g;
}

BlockTable block_table(const Moment& m) {
  BlockTable t{.page_slots = m.c->pool.page_slots};
  if (m.row == nullptr) return t;
  const Sequence& sequence = m.timeline->sequence(m.row->request);
  const size_t shown = std::min(sequence.pages.size(), kBlockTableMax);
  for (size_t i = 0; i < shown; ++i) t.pages.push_back(sequence.pages[i].value);
  t.left_out = sequence.pages.size() - shown;
  if (m.query >= 0) {
    const int64_t slot = query_slot(*m.row, static_cast<uint32_t>(m.query));
    if (slot >= 0) t.marked = slot / t.page_slots;
  }
  return t;
}

}  // namespace kv
