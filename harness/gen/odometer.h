// Purpose: every sequence of choices, one after the other: the generator as an enumeration.
// Contract: a drawing function that takes choices from an Odometer, called again after each next(),
// meets each of its sequences exactly once, in lexicographic order; next() is false after the last.
// The function must be one of bounded depth, with choices of few. Example:
//   Odometer choices;
//   do { visit(draw_small(choices)); } while (choices.next());
#pragma once

#include <utility>
#include <vector>

#include "harness/gen/choice_source.h"

namespace kv {

class Odometer final : public ChoiceSource {
 public:
  uint64_t below(uint64_t bound) override;
  bool next();

 private:
  struct Digit {
    uint64_t value = 0, bound = 1;
  };
  std::vector<Digit> digits_;
  size_t used_ = 0;  // by the drawing that goes on
};

}  // namespace kv
