// Purpose: the ways of making a case simpler.
// Contract: a pass offers candidates to the shrinker until it has no more; it neither judges nor
// limits. Passes may be run in any order and any number of times.
#pragma once

#include "harness/minimize/shrinker.h"

namespace kv {

// pass_lists.cpp
void drop_tail(Shrinker& shrinker);
void drop_requests(Shrinker& shrinker);
void drop_requests_with_room(Shrinker& shrinker);
void drop_operations(Shrinker& shrinker);
void drop_rows(Shrinker& shrinker);
void drop_beams(Shrinker& shrinker);
void drop_overrides(Shrinker& shrinker);
void fold_steps(Shrinker& shrinker);

// pass_shape.cpp
void shrink_heads(Shrinker& shrinker);
void shrink_dimensions(Shrinker& shrinker);
void shrink_pages(Shrinker& shrinker);
void merge_pages(Shrinker& shrinker);
void shrink_lengths_by_pages(Shrinker& shrinker);

// pass_numbers.cpp
void shrink_numbers(Shrinker& shrinker);
void drop_settings(Shrinker& shrinker);
void number_requests(Shrinker& shrinker);

// pass_history.cpp: of histories alone
void plain_engine(Shrinker& shrinker);
void plain_operations(Shrinker& shrinker);
void shrink_history_pages(Shrinker& shrinker);
void shrink_contexts(Shrinker& shrinker);

// pass_data.cpp
void simplify_design(Shrinker& shrinker);
void make_explicit(Shrinker& shrinker);

}  // namespace kv
