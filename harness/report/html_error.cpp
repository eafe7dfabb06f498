// The heat map of errors, in units of their bounds.
#include <fmt/format.h>

#include "harness/report/html_pictures.h"

namespace kv {
namespace {

constexpr double kLimits[] = {0.01, 0.1, 0.5, 1, 10};
constexpr uint8_t kNotJudged = 6;

uint8_t heat(double ratio) {
  uint8_t level = 0;
  for (const double limit : kLimits) level += ratio > limit ? 1 : 0;
  return level;
}

}  // namespace

Grid error_grid(const ErrorMap& map, bool of_heads, int64_t dimension) {
  const std::vector<ErrorRow>& rows = of_heads ? map.heads : map.queries;
  Grid g{.title = of_heads ? "|error| / bound of the failing row, for each query head"
                           : "|error| / bound of the failing head, for each query row",
         .columns = "dimension",
         .first_column = map.first_dimension,
         .marked_column = dimension};
  g.kinds = {{"heat0", "at most 0.01"}, {"heat1", "at most 0.1"}, {"heat2", "at most 0.5"},
             {"heat3", "at most 1"},    {"heat4", "1 to 10"},     {"heat5", "more than 10"},
             {"off", "not compared"}};
  size_t columns = 0;
  for (const ErrorRow& row : rows) columns = std::max(columns, row.ratios.size());
  for (const ErrorRow& row : rows) {
    GridRow out{.label = of_heads ? fmt::format("head {}", row.head)
                                  : fmt::format("query slot {}", row.query_slot),
                .marked = row.here};
    for (const double ratio : row.ratios) out.cells.push_back(heat(ratio));
    out.cells.resize(columns, kNotJudged);
    g.rows.push_back(std::move(out));
  }
  if (columns == 0) g.rows.clear();
  return g;
}

}  // namespace kv
