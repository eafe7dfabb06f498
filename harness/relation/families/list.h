// Purpose: the families of relations: one file of this folder each, named as the relation is.
// Contract: KV_FAMILIES is the only list. CMake takes the sources from it, relations() their order,
// which decides what a number names: a new one goes to the end. families_test holds the list, the
// folder, the contracts in the files and properties/README.md together.
// Example:
//   #define NAME(family) families::family.name,
//   constexpr std::string_view kNames[] = {KV_FAMILIES(NAME)};
#pragma once

#include "harness/relation/relation.h"

// clang-format off
#define KV_FAMILIES(X) \
  X(pages)             \
  X(layout)            \
  X(poison)            \
  X(schedule)          \
  X(call_again)        \
  X(graph)             \
  X(batch_order)       \
  X(alone)             \
  X(company)           \
  X(history)           \
  X(chunks)            \
  X(split_size)        \
  X(padding)           \
  X(heads_rotated)     \
  X(heads_repeated)    \
  X(value_channels)    \
  X(power_of_two)      \
  X(logit_shift)       \
  X(census)            \
  X(constant_value)    \
  X(positions)         \
  X(encoding)          \
  X(liveness)
// clang-format on

namespace kv::families {

#define KV_DECLARE(family) extern const Relation family;
KV_FAMILIES(KV_DECLARE)
#undef KV_DECLARE

}  // namespace kv::families
