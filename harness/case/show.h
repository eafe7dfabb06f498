// Purpose: a case as a person wants to read it: every operation in words, the block tables, and
// each query row's visible set as a 0/1 matrix over slots.
// Contract: a pure function of the case; matrices and lists beyond the limits below are elided, and
// say so. A case that Timeline refuses is shown as far as it is lawful, with the reason.
// Example:  std::string text = show_case(c);
#pragma once

#include <string>

#include "harness/case/case.h"

namespace kv {

inline constexpr uint32_t kShownColumnsMax = 96;      // slots of a matrix row
inline constexpr uint32_t kShownQueriesMax = 32;      // rows of one matrix
inline constexpr uint32_t kShownPagesMax = 24;        // pages of one block table
inline constexpr uint32_t kShownOperationsMax = 200;  // operations of one case

std::string show_case(const Case& c);

}  // namespace kv
