// Purpose: cases with a relation, for every driver: random numbers, RapidCheck's lists, bytes.
// Contract: total and lawful like draw(), whose choices come first; one case in six has its logits
// moved (Data::view), one in three names a relation, and one that names a relation has an image.
// Example:  PhiloxSource choices(seed, index);  Case c = draw_related(choices);
#pragma once

#include "harness/case/case.h"
#include "harness/gen/draw.h"
#include "harness/relation/relation.h"

namespace kv {

Case draw_related(ChoiceSource& choices, const DrawOptions& options = {});

/// The first of a few drawn cases that has an image under the relation, which it names; where none
/// has, the last of them, without a relation.
Case draw_of_family(ChoiceSource& choices, const Relation& relation,
                    const DrawOptions& options = {});

/// Lets `c` name the first relation at or after the `number`-th (modulo their count) that has an
/// image of it. False, and no relation, when there is none.
bool relate(Case& c, uint64_t number, uint64_t seed);

}  // namespace kv
