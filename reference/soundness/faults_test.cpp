#include "reference/soundness/faults.h"

#include <gtest/gtest.h>

#include "reference/soundness/drawn_head.h"

namespace kv::reference {
namespace {

double output(const RowInputs& in) {
  return precise_row<double>(in, resolve_profile({}), {.columns = {3}}).columns[0].value;
}

TEST(Faults, EachChangesTheAnswerAndTheTwoThatAreNoneDoNot) {
  TestHead head({.slots = 40});
  const RowInputs inputs = row_inputs(head.block(), 0);
  for (Fault fault : kFaults) {
    int changed = 0;
    for (uint64_t seed = 0; seed < 32; ++seed) {
      Draw draw(seed);
      const RowInputs wrong = plant(fault, inputs, draw);
      // Sums in another order differ in the last bits only.
      changed += std::abs(output(wrong) - output(inputs)) > 1e-12;
    }
    const bool none = fault == Fault::kNone || fault == Fault::kSwapKeysAndValues;
    EXPECT_EQ(changed > 0, !none) << fault_name(fault);
  }
}

}  // namespace
}  // namespace kv::reference
