// Purpose: the structural checks: is what an engine says of itself consistent, and does it agree
// with the model? Nothing here reads a byte of K or V.
// Contract: pure functions; each returns the first thing that is wrong, or nothing. They accept any
// page choice and any order of eviction.
// Example:  if (auto found = check_references(state)) return found;
#pragma once

#include <vector>

#include "harness/history/finding.h"
#include "harness/history/model.h"

namespace kv {

/// Counts recounted over the block tables of all active requests; host pages alike.
MaybeFinding check_references(const EngineState& state);

/// Free, fenced, cached and owned pages are each page of the pool once, free and host pages too.
MaybeFinding check_partition(const EngineState& state);

/// The slots that a successful step appended lie in exclusively owned pages, and none of these was
/// its request's already while published: the index would go on naming the old bytes.
MaybeFinding check_write_set(const EngineState& before, const EngineState& after,
                             const call::Step& step);

/// Requests, states, handles, lengths, positions and the shape of block tables are the model's.
MaybeFinding check_lengths(const EngineState& state, const Model& model, bool draft);

/// The index is a tree over pages that are owned or cached, each published once, and every cached
/// page is in it. Pages that a step in flight writes are not.
MaybeFinding check_index_shape(const EngineState& state,
                               const std::vector<uint32_t>& flying_writes);

/// Of the pages that an operation has published, each that active requests hold is settled for one
/// who holds it or did before: none of its slots is speculative there. Not after a defrag, which
/// renames pages.
MaybeFinding check_settled(const EngineState& before, const EngineState& after, const Model& model);

/// What differs between two states, but for the copies of the last operation; "" for nothing.
std::string first_difference(const EngineState& before, const EngineState& after);

/// Pages between 0 and page_count that a table of the request holds, in all groups.
std::vector<uint32_t> pages_of(const RequestState& request);

}  // namespace kv
