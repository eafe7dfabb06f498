// Purpose: mutants that a machine makes of the PTX, without a compiler: which of them does the
// suite kill?
// Contract: one shard, in a process that may be lost: takes every shards-th chosen mutation that is
// not done yet, tries it on the cases that execute its instruction, those first that have killed
// most, until one objects or the cap is reached, and hands each result to the sink at once. Chosen
// are mutations_max of those whose instruction the suite executes, spread evenly over the list,
// which is the same in every process. The suite then grows, up to kGrownMax draws, by every case
// that executes the instruction of a chosen mutation which fewer than reach_cases of them do, and
// where draws have fewer by up to kRelativesMax cases of the same shape as one that does. The order
// of results is that of the list.
// Example:  run_shard(bench, {.kernel = "attend_decode"}, [&](const MachineResult& r) { ... });
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/mutant/suite.h"

namespace kv {

inline constexpr uint32_t kGrownMax = 600, kRelativesMax = 60;

struct MachineResult {
  uint64_t index = 0;                             // in the list of mutations
  std::string kernel, source, op, before, after;  // source: "file:line"
  uint32_t variant = 0;
  bool reached = false, infected = false, propagated = false;
  std::string killer;  // "" for a survivor
  uint64_t cases = 0;
  bool is_complete = true;  // false: the cap came first
};

struct MachineOptions {
  std::string kernel;             // part of the name of the kernels that are changed
  uint64_t mutations_max = 2000;  // 0: all
  SuiteOptions suite;
  uint32_t reach_cases = 40;  // that each mutation has, where draws have them
  double seconds_max = 10;    // of processor time for each
  uint64_t shard = 0, shards = 1;
  std::set<uint64_t> done;          // indices whose results are known already
  std::vector<MachineResult> only;  // that are tried, whatever else the suite executes; empty: all
};

struct ShardFacts {
  uint64_t mutations = 0;  // of the kernels, whether executed or not
  uint64_t executed = 0;   // of instructions that the suite executes
  uint64_t chosen = 0;
};

/// `begin` is called before each mutation is put in force: a process that is lost was at the last.
Result<ShardFacts> run_shard(const Bench& bench, const MachineOptions& options,
                             const std::function<void(const MachineResult&)>& begin,
                             const std::function<void(const MachineResult&)>& end);

}  // namespace kv
