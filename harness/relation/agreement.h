// Purpose: do the results of a case and of its image agree, bit for bit where that was promised?
// Contract: both observations passed the other stages, so their sizes are right. Rows without a
// partner on the other side are not compared; PAD rows only where the plugin computes them; and
// where the case forces a variant, steps only that ran the same one. A pure function of its
// arguments.
// Example: if (auto failure = disagreement({c, base}, image, {image.c, seen}, facts)) ...
#pragma once

#include <optional>
#include <vector>

#include "harness/judge/failure.h"
#include "harness/relation/relation.h"

namespace kv {

/// A lawful case and what was seen of all its operations.
struct Seen {
  const Case& c;
  const std::vector<OpObservation>& ops;
};

/// Must the bits of the image's results be those of the case?
bool bits_promised(const Relation& relation, const PluginFacts& facts);

/// Nothing, or the first element of `base` (in the order of its results) that differs.
std::optional<Failure> disagreement(const Seen& base, const Image& image, const Seen& seen,
                                    const PluginFacts& facts);

/// The same of what the cache holds after each operation, where the relation says same_cache.
bool cache_promised(const Relation& relation, const PluginFacts& facts);
std::optional<Failure> cache_disagreement(const Seen& base, const Seen& seen);

}  // namespace kv
