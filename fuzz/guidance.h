// Purpose: what guides the search beside the edges of host code: counters that libFuzzer reads as
// if they were edges.
// Contract: one region, in the fuzz executable (libFuzzer looks for its extra counters nowhere
// else), cleared by libFuzzer before every input. Its first part is lent to the CPU device for the
// edges of PTX; the rest holds what a case is (relations between page, tile, window, split, group,
// lengths) one by one and in pairs, and how near an output came to its bound. Only what a case
// does decides, never time or place.
// Example:  note_relations(relations_of(c, splits));
// note_ratio(verdict.stats.error_bound_ratio_max);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/observation.h"

namespace kv::fuzzing {

/// For set_edge_counters.
std::span<uint8_t> edge_counters();

/// One way in which two quantities of a case stand to each other, or one setting: `what` of it, and
/// which of its few values.
struct Relation {
  uint8_t what = 0, value = 0;
};

/// Of the last step of the case; `variant` and `splits` are what the plugin chose.
std::vector<Relation> relations_of(const Case& c, std::string_view variant, uint32_t splits);

/// Each relation, and each pair.
void note_relations(std::span<const Relation> relations);
/// Of a case that has not run: the mean over the pairs of its relations of 1 / (1 + how often
/// meet() was told of the pair). A hash tells pairs apart; two may share a place.
double novelty_of(std::span<const Relation> relations);
void meet(std::span<const Relation> relations);
/// The largest |error| / bound.
void note_ratio(double ratio);
/// Anything else: a number below 1024.
void note(uint32_t number);

}  // namespace kv::fuzzing
