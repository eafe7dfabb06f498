// Lists: whole items go, many at a time first (ddmin, without its complements: what is left after
// removing a chunk is what the next round works on).
#include <algorithm>

#include "harness/minimize/passes.h"

namespace kv {
namespace {

struct Chunk {
  size_t first = 0, count = 0;
};

// `size(case)` items; `without(case, chunk)` is the case that lacks some of them.
template <class Size, class Without>
void drop_items(Shrinker& shrinker, Size size, Without without) {
  for (size_t count = (size(shrinker.best()) + 1) / 2; count > 0; count /= 2) {
    // From the back: later operations depend on earlier ones.
    for (size_t end = size(shrinker.best()); end > 0 && !shrinker.spent();) {
      const size_t first = end > count ? end - count : 0;
      shrinker.take(without(shrinker.best(), Chunk{first, end - first}));
      end = std::min(first, size(shrinker.best()));
    }
  }
}

template <class T>
void erase(std::vector<T>& items, const Chunk& chunk) {
  const auto first = items.begin() + static_cast<ptrdiff_t>(chunk.first);
  items.erase(first, first + static_cast<ptrdiff_t>(chunk.count));
}

std::vector<RequestId> requests_of(const Case& c) {
  std::vector<RequestId> ids;
  for (const Op& operation : c.ops) {
    if (const auto* admit = std::get_if<op::Admit>(&operation)) ids.push_back(admit->request);
    if (const auto* fork = std::get_if<op::Fork>(&operation)) ids.push_back(fork->child);
    if (const auto* restore = std::get_if<op::Restore>(&operation)) ids.push_back(restore->request);
  }
  return ids;
}

void forget_beam(op::Reorder& reorder, RequestId id) {
  for (size_t i = reorder.beams.size(); i-- > 0;) {
    if (reorder.beams[i] != id && reorder.sources[i] != id) continue;
    erase(reorder.beams, Chunk{i, 1});
    erase(reorder.sources, Chunk{i, 1});
  }
}

// Whether the operation has nothing left to do once request `id` is gone; its rows are removed.
bool forget(Op& operation, RequestId id) {
  return std::visit(
      [id](auto& o) {
        if constexpr (requires { o.rows; }) {
          std::erase_if(o.rows, [id](const auto& row) { return row.request == id; });
          return o.rows.empty();
        } else if constexpr (requires { o.prefix_of; }) {
          if (o.prefix_of == id) o.prefix_of.reset(), o.prefix_tokens = 0;
          return o.request == id;
        } else if constexpr (requires { o.saved; }) {
          return o.request == id || o.saved == id;
        } else if constexpr (requires { o.request; }) {
          return o.request == id;
        } else if constexpr (requires { o.parent; }) {
          return o.parent == id || o.child == id;
        } else if constexpr (requires { o.beams; }) {
          forget_beam(o, id);
          return o.beams.empty();
        } else {
          return false;
        }
      },
      operation);
}

Case without_requests(const Case& from, const Chunk& chunk) {
  const std::vector<RequestId> ids = requests_of(from);
  Case c = from;
  for (size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
    std::erase_if(c.ops, [&](Op& operation) { return forget(operation, ids[i]); });
  }
  return c;
}

struct RowPlace {
  size_t op = 0, row = 0;
};

std::vector<RowPlace> rows_of(const Case& c) {
  std::vector<RowPlace> places;
  for (size_t i = 0; i < c.ops.size(); ++i) {
    const auto* step = std::get_if<op::Step>(&c.ops[i]);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) places.push_back({i, r});
  }
  return places;
}

op::StepRow& row_at(Case& c, const RowPlace& at) {
  return std::get<op::Step>(c.ops[at.op]).rows[at.row];
}

void erase_row(Case& c, const RowPlace& at) {
  auto& rows = std::get<op::Step>(c.ops[at.op]).rows;
  erase(rows, Chunk{at.row, 1});
  if (rows.empty()) erase(c.ops, Chunk{at.op, 1});
}

Case without_rows(const Case& from, const Chunk& chunk) {
  const std::vector<RowPlace> places = rows_of(from);
  Case c = from;
  for (size_t i = chunk.first + chunk.count; i-- > chunk.first;) erase_row(c, places[i]);
  return c;
}

// Row `index` is left to the next row of its request, which appends for both.
Case folded(const Case& from, size_t index) {
  const std::vector<RowPlace> places = rows_of(from);
  Case c = from;
  const op::StepRow row = row_at(c, places[index]);
  for (size_t i = index + 1; i < places.size(); ++i) {
    op::StepRow& next = row_at(c, places[i]);
    if (next.request != row.request) continue;
    next.append += row.append;
    next.pad_left += row.pad_left;
    next.pad_right += row.pad_right;
    erase_row(c, places[index]);
    return c;
  }
  return c;
}

size_t operations(const Case& c) { return c.ops.size(); }
size_t overrides(const Case& c) { return c.data.overrides.size(); }

/// Beams of all reorders, one after another.
size_t beams_of(const Case& c) {
  size_t count = 0;
  for (const Op& operation : c.ops) {
    const auto* reorder = std::get_if<op::Reorder>(&operation);
    if (reorder != nullptr) count += reorder->beams.size();
  }
  return count;
}

Case without_beams(Case c, const Chunk& chunk) {
  size_t at = beams_of(c);
  for (size_t i = c.ops.size(); i-- > 0;) {
    auto* reorder = std::get_if<op::Reorder>(&c.ops[i]);
    for (size_t b = reorder == nullptr ? 0 : reorder->beams.size(); b-- > 0;) {
      --at;
      if (at < chunk.first || at >= chunk.first + chunk.count) continue;
      erase(reorder->beams, Chunk{b, 1});
      erase(reorder->sources, Chunk{b, 1});
    }
  }
  return c;
}

}  // namespace

// The failure often stands early: whatever follows it goes at once, by bisection.
void drop_tail(Shrinker& shrinker) {
  for (size_t low = 0; low + 1 < shrinker.best().ops.size() && !shrinker.spent();) {
    const size_t middle = (low + shrinker.best().ops.size()) / 2;
    Case c = shrinker.best();
    c.ops.resize(middle);
    if (!shrinker.take(std::move(c))) low = middle;
  }
}

void drop_requests(Shrinker& shrinker) {
  drop_items(
      shrinker, [](const Case& c) { return requests_of(c).size(); }, without_requests);
}

// Where an engine must be full, a request goes with the room that it took.
void drop_requests_with_room(Shrinker& shrinker) {
  if (!shrinker.best().engine) return;
  for (size_t i = requests_of(shrinker.best()).size(); i-- > 0 && !shrinker.spent();) {
    Case c = without_requests(shrinker.best(), Chunk{i, 1});
    EngineLevel& e = *c.engine;
    if (e.batch_slots < 2) return;
    c.pool.page_count = std::max(1U, c.pool.page_count / e.batch_slots * (e.batch_slots - 1));
    e.batch_slots -= 1;
    e.request_max = std::max(e.batch_slots, e.request_max - 1);
    shrinker.take(std::move(c));
  }
}

void drop_operations(Shrinker& shrinker) {
  drop_items(shrinker, operations, [](Case c, const Chunk& chunk) {
    erase(c.ops, chunk);
    return c;
  });
}

void drop_rows(Shrinker& shrinker) {
  drop_items(
      shrinker, [](const Case& c) { return rows_of(c).size(); }, without_rows);
}

void drop_beams(Shrinker& shrinker) { drop_items(shrinker, beams_of, without_beams); }

void drop_overrides(Shrinker& shrinker) {
  drop_items(shrinker, overrides, [](Case c, const Chunk& chunk) {
    erase(c.data.overrides, chunk);
    return c;
  });
}

void fold_steps(Shrinker& shrinker) {
  for (size_t i = rows_of(shrinker.best()).size(); i-- > 0 && !shrinker.spent();) {
    if (i < rows_of(shrinker.best()).size()) shrinker.take(folded(shrinker.best(), i));
  }
}

}  // namespace kv
