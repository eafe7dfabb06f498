// Purpose: what no hypothesis explains by itself: one that holds for some rows only, or two at
// once. Contract: a combination changes a reading by its parts, in their order; rows of another
// kind stay as they are. candidates() are those that contain one wrong row and change no row that
// is known to be right by its kind alone; whether they contain the others is for the caller to
// find. What is made here has more freedom than its parts: it explains nothing before further cases
// confirm it. Pairs are tried where a row is small (kPairWorkMax), and among what changes that row.
// Example: for (Hypothesis& h : limited_candidates(scene, wrong, hypotheses(scene))) ...
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/explain/catalogue.h"

namespace kv {

/// Each hypothesis for a kind of rows that holds all of the wrong ones, and not all of the scene's:
/// a query head of each group, a layer, a request, the first or last queries.
std::vector<Hypothesis> limited_candidates(const Scene& scene, std::span<const RowAt> wrong,
                                           const std::vector<Hypothesis>& from);
/// Every two that contain the row together.
std::vector<Hypothesis> paired_candidates(const Scene& scene, const RowAt& wrong,
                                          const std::vector<Hypothesis>& from);

/// The same hypothesis, or combination, as another scene has it; nullopt where it or a part is not.
std::optional<Hypothesis> found_again(const Hypothesis& h, const std::vector<Hypothesis>& there);

}  // namespace kv
