// Purpose: what the pictures of the HTML report show, as data: from a case and the place of a
// failure in it to grids.
// Contract: pure functions of their arguments, bounded by the constants below whatever the case;
// what is left out is said in the picture's note. A case that has no timeline at the kernel level
// gives empty pictures.
// Example: if (auto moment = moment_of(c, verdict)) out += grid_figure(mask_grid(*moment));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "harness/case/timeline.h"
#include "harness/judge/error_map.h"
#include "harness/judge/verdict.h"
#include "harness/report/html_svg.h"

namespace kv {

inline constexpr size_t kGridColumnsMax = 128, kGridRowsMax = 48;
inline constexpr size_t kPoolPagesMax = 1024, kBlockTableMax = 96;

/// A case after the operation that failed. Holds its own copy of the case.
struct Moment {
  std::unique_ptr<const Case> c;
  uint32_t op_index = 0;
  std::optional<Timeline> timeline;
  PlannedStep step;
  const PlannedRow* row = nullptr;  // of the failing request; nullptr when the step has none
  int64_t query = -1;               // of that row
  uint32_t head = 0;                // query head, where the verdict has one
};

/// Where the verdict has no place (a race, say), the last step and its first row stand for it.
std::optional<Moment> moment_of(const Case& c, const Verdict& verdict);

/// What each query row of the failing request may see, by the reference's own definition, for the
/// failing head.
Grid mask_grid(const Moment& moment);

/// What the kernel reads, if a hypothesis about it holds: for query rows of the failing request,
/// from `first_query` on, how often each slot counts.
struct KernelMask {
  uint32_t first_query = 0;
  std::vector<std::vector<uint32_t>> copies;
};
/// The query rows that mask_grid draws: first and last + 1.
std::pair<uint32_t, uint32_t> drawn_queries(const Moment& moment);
/// mask_grid with the slots marked in which the kernel differs; no rows where it does not.
Grid kernel_mask_grid(const Moment& moment, const KernelMask& kernel);
/// Pages of the pool by the request that holds them.
Grid ownership_grid(const Moment& moment);
BlockTable block_table(const Moment& moment);
/// Requests by operations: who was admitted, ran, forked, ended; also of histories.
Grid operations_grid(const Case& c, int64_t failing_op);
/// error / bound of rows by dimensions.
Grid error_grid(const ErrorMap& map, bool of_heads, int64_t dimension);

}  // namespace kv
