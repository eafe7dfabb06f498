// Purpose: from wrong bytes in a cache that the plugin rotates or quantises to the name of the
// append's fault.
// Contract: a hypothesis remains when every new slot of the step, in every layer and head, holds
// what an append with that fault may store, and at least one of them not what a right one may. Says
// nothing of tensors that are stored as they are given: there provenance names whose bytes they
// are. Example: for (const Named& fault : stored_faults(c, observation, op_index).remain) ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/observation.h"

namespace kv {

struct StoredFaults {
  struct Fault {
    std::string name, sentence;  // completes "the cache holds what an append leaves when ..."
  };
  uint64_t hypotheses = 0;  // that were tried
  std::vector<Fault> remain;
};

/// `observation` must reach the step at `op_index`, and be well formed so far.
StoredFaults stored_faults(const Case& c, const Observation& observation, uint32_t op_index);

}  // namespace kv
