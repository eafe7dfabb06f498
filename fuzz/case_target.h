// Purpose: a fuzz target whose inputs are cases: what it has to say for itself.
// Contract: each such target links case_target.cpp, which defines libFuzzer's entry points, and
// defines case_target(). An input that begins with '{' is a case as JSON (corpus/ seeds it as it
// is); any other is choices for draw(), in chunks (parts.h). Cases that do not fit are left out.
// Options, before libFuzzer's own: --kv_unguided=N draws and runs N cases from random numbers alone
// (--kv_seed=S), --kv_decode=FILE prints the case of an input, --kv_limit_NAME=N the size of cases.
// Example: see attention.cpp.
#pragma once

#include <string>
#include <string_view>

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"

namespace kv::fuzzing {

struct CaseTarget {
  /// Once, after all options; ends the process where something is missing.
  void (*open)();
  /// False: no such limit.
  bool (*set_limit)(std::string_view name, uint32_t value);
  Case (*draw)(ChoiceSource& choices);
  /// Is it small enough, and of the kind that the target runs?
  bool (*fits)(const Case& c);
  /// Runs, judges, notes what guides the search; end_with_finding() where it fails.
  void (*run)(const Case& c);
  /// How much of a case has seldom been run before, of any scale; nullptr: nobody asks.
  double (*novelty)(const Case& c) = nullptr;
  /// How many operations are drawn where all of an input is (mutate.h): of a history as many as it
  /// may have.
  size_t operations = 8;
  /// Nothing is taken from an input that was met before: what its generator draws finds as much,
  /// and in half of the time (README).
  bool draws_anew = false;
};

const CaseTarget& case_target();

}  // namespace kv::fuzzing
