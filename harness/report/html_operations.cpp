// The timeline of a case: one row for each request, one column for each operation.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/case/names.h"
#include "harness/report/html_pictures.h"

namespace kv {
namespace {

enum Event : uint8_t { kNothing, kAlive, kAdmitted, kPrefill, kDecode, kRewritten, kEnded, kOther };

using Events = std::map<uint32_t, uint8_t>;  // of one operation, by request

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

Events events_of(const Op& operation) {
  Events e;
  std::visit(Overloaded{[&](const op::Admit& o) { e[o.request.value] = kAdmitted; },
                        [&](const op::Restore& o) { e[o.request.value] = kAdmitted; },
                        [&](const op::Step& o) {
                          for (const op::StepRow& row : o.rows)
                            e[row.request.value] = row.queries > 1 ? kPrefill : kDecode;
                        },
                        [&](const op::Fork& o) {
                          e[o.parent.value] = kOther;
                          e[o.child.value] = kAdmitted;
                        },
                        [&](const op::Reorder& o) {
                          for (const RequestId r : o.beams) e[r.value] = kRewritten;
                        },
                        [&](const op::Truncate& o) { e[o.request.value] = kRewritten; },
                        [&](const op::Shift& o) { e[o.request.value] = kRewritten; },
                        [&](const op::Cancel& o) { e[o.request.value] = kEnded; },
                        [&](const op::Finish& o) { e[o.request.value] = kEnded; },
                        [&](const auto& o) {
                          if constexpr (requires { o.request; }) e[o.request.value] = kOther;
                        }},
             operation);
  return e;
}

}  // namespace

Grid operations_grid(const Case& c, int64_t failing_op) {
  Grid g{.title = "Operations of the case", .columns = "operation", .marked_column = failing_op};
  g.kinds = {{"off", "not there"},
             {"alive", "waits"},
             {"admitted", "admitted or forked"},
             {"prefill", "step of several queries"},
             {"decode", "step of at most one query"},
             {"rewritten", "reordered or cut"},
             {"ended", "ended"},
             {"other", "other operation"}};
  const size_t count = std::min(c.ops.size(), kGridColumnsMax);
  const size_t at = failing_op < 0 ? 0 : static_cast<size_t>(failing_op);
  const size_t begin = std::min(at > count / 2 ? at - count / 2 : 0, c.ops.size() - count);
  g.first_column = begin;
  struct Row {
    uint8_t state = kNothing;    // after the last operation
    std::vector<uint8_t> cells;  // of those that are drawn
  };
  std::map<uint32_t, Row> rows;
  for (size_t i = 0; i < begin + count; ++i) {
    const Events events = events_of(c.ops[i]);
    for (const auto& [request, event] : events) rows[request].state = event;
    for (auto& [request, row] : rows) {
      if (i < begin) break;
      const bool gone = row.state == kNothing || (row.state == kEnded && !events.contains(request));
      row.cells.resize(i - begin, kNothing);
      row.cells.push_back(gone                       ? uint8_t{kNothing}
                          : events.contains(request) ? row.state
                                                     : uint8_t{kAlive});
    }
  }
  // Those that the failing operation names come first, then the others by number.
  const Events failing = failing_op >= 0 && at < c.ops.size() ? events_of(c.ops[at]) : Events{};
  size_t left_out = 0;
  for (const bool named : {true, false}) {
    for (const auto& [request, row] : rows) {
      if (failing.contains(request) != named) continue;
      if (g.rows.size() == kGridRowsMax) {
        ++left_out;
        continue;
      }
      g.rows.push_back({.label = fmt::format("request {}", request), .cells = row.cells});
    }
  }
  if (count < c.ops.size())
    g.note =
        fmt::format("operations {} to {} of {} drawn. ", begin, begin + count - 1, c.ops.size());
  if (left_out > 0) g.note += fmt::format("{} more requests not drawn.", left_out);
  return g;
}

}  // namespace kv
