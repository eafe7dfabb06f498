// Purpose: the tables that relation.cpp joins into one.
// Contract: static data; names are unique over all tables (relation_test).
// Example:  for (const Relation& r : pool_relations()) ...
#pragma once

#include <span>

#include "harness/relation/relation.h"

namespace kv {

std::span<const Relation> pool_relations();   // where bytes lie, when work runs
std::span<const Relation> batch_relations();  // who computes with whom, in how many steps
std::span<const Relation> data_relations();   // which numbers

/// Moves all logits of the case by a step of the ladder; false where that cannot be done.
bool shift_logits(ChoiceSource& choices, Case& c);

}  // namespace kv
