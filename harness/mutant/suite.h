// Purpose: the cases that machine mutants are tried on, and what the unmutated plugin makes of
// them. Contract: runs in a process that has loaded the plugin on the CPU device: mutated kernels
// reach no memory but the device's. Only cases that the unmutated plugin passes are kept, in the
// order drawn. An entry is a case and, where it names a relation, its image; run() tells whether
// the mutation in force was reached, changed any value, changed any result, and whether the judge
// objects. Example: KV_ASSIGN_OR_RETURN(Suite suite, Suite::create(bench, {.cases = 40}));
//           for (size_t i = 0; i < suite.size(); ++i) outcome = suite.run(i);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/relation/pair_judge.h"
#include "harness/run/kernel_run.h"
#include "harness/run/wire.h"

namespace kv {

struct SuiteOptions {
  uint64_t seed = 1;
  uint32_t cases = 40;
};

struct EntryOutcome {
  bool reached = false, infected = false, propagated = false;
  std::string killer;  // "" when the judge does not object
};

class Suite {
 public:
  static Result<Suite> create(const Bench& bench, const SuiteOptions& options);
  /// Draws on until the plugin passes a case, which is the last entry then. False: none of the next
  /// ones passed.
  Result<bool> grow();
  /// The same with cases of this entry's shape, of which everything else is drawn anew.
  Result<bool> grow_like(size_t entry);
  void drop_last() { entries_.pop_back(); }
  size_t size() const { return entries_.size(); }
  EntryOutcome run(size_t entry) const;
  /// Warp instructions of the unmutated plugin.
  uint64_t cost(size_t entry) const;

 private:
  /// One run of one case.
  struct Run {
    std::vector<OpObservation> ops;
    RunEnd end;
    uint64_t digest = 0, mutated = 0;
    Bytes bytes;  // of everything observed
  };
  struct Entry {
    Case c;
    std::optional<Image> image;
    std::vector<Run> runs;  // of the unmutated plugin: of the case, then of the image
    uint64_t origin = 0;    // the draw that its shape is of
  };

  Suite(const Bench& bench, uint64_t seed)
      : bench_(&bench), facts_(plugin_facts(bench.plugin)), seed_(seed) {}
  Result<bool> grow_by(ChoiceSource& choices, uint64_t origin);
  Run run_case(const Case& c) const;
  std::vector<Run> run_entry(const Entry& entry) const;
  Verdict judge(const Entry& entry, const std::vector<Run>& runs) const;

  const Bench* bench_;
  PluginFacts facts_;
  uint64_t seed_;
  uint64_t drawn_ = 0, relatives_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace kv
