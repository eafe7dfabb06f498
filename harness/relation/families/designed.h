// Purpose: what families that change numbers have in common.
// Contract: pure functions of the case.
// Example:  if (!is_designed(image.c)) return false;
#pragma once

#include "harness/case/case.h"

namespace kv::families {

/// Overrides name places; they do not move with what a view moves. Nor does V move alone that lies
/// in K.
inline bool is_designed(const Case& c) {
  return c.data.overrides.empty() && c.data.tensors_file.empty() && !c.shape.value_in_key;
}

/// The same case with another design; false where there is nothing to change.
inline bool as_design(Case& c, Design design) {
  if (!is_designed(c) || c.data.design == design) return false;
  c.data.design = design;
  return true;
}

}  // namespace kv::families
