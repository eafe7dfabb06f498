// Purpose: cases as RapidCheck generates them; the one header that includes RapidCheck.
// Contract: a case is drawn from a list of choices (harness/gen), so RapidCheck shrinks the list
// and the case gets simpler with it. A counterexample is shown as its canonical JSON, ready to
// replay. Example:
//   RC_GTEST_PROP(Case, IsLawful, ()) {
//     const Case c = *props::cases();
//     RC_ASSERT(Timeline::create(c).ok());
//   }
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
// Uses GoogleTest without including it.
#include <rapidcheck/gtest.h>

#include "harness/case/case.h"
#include "harness/relation/relation.h"

namespace kv {

/// Found by argument-dependent lookup: how RapidCheck prints a case.
void showValue(const Case& c, std::ostream& out);

namespace props {

/// Any case that the generator can draw, simple ones first.
rc::Gen<Case> cases();

/// Any history that the generator can draw, for engines that own their cache.
rc::Gen<Case> histories();

/// Cases of one family of relations (harness/relation/draw_related.h).
rc::Gen<Case> cases_of(const Relation& relation);

}  // namespace props
}  // namespace kv
