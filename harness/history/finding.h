// Purpose: what is wrong with an engine's history, and which class of check says so.
// Contract: plain values; the classes stand in the order in which they are looked at, and all but
// kValues are decided without a floating-point comparison: an echo is equal bits or is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/id.h"

namespace kv {

enum class CheckClass : uint8_t {
  kDevice,       // the device beneath found a fault: memory, undefined data, race, barrier
  kSnapshot,     // what the engine says of itself cannot be read
  kReferences,   // reference counts recounted over all holders
  kPartition,    // free, fenced, cached and owned pages partition the pool
  kWriteSet,     // a step writes its scheduled slots, each exclusively owned
  kLengths,      // lengths, positions, owners, states: who exists and how long it is
  kFence,        // a page is reused only after the last launched step that touches it
  kIndex,        // published key <-> content
  kProvenance,   // every slot holds its token, K and V, each layer
  kAtomicity,    // what did not succeed has changed nothing
  kAnswer,       // refused, or not, as the contract says
  kProgress,     // no room, where there is room
  kLeak,         // nothing is left when all requests are gone
  kValues,       // attention against the reference
  kEcho,         // the same tokens give the same bits, whatever else happens
  kUnsupported,  // no fault: the device beneath does not know the engine's code, and nothing is
                 // said
};
std::string_view check_name(CheckClass check);

struct HistoryFinding {
  CheckClass check = CheckClass::kSnapshot;
  std::string message = {};  // what, where, expected, got
  uint32_t op_index = 0;     // the number of operations when it was found at the end
  std::string operation = {};
  std::string twin = {};  // the relation (twin.h) in whose second run it was found; "": the first
  std::optional<RequestId> request = {};
  std::optional<uint32_t> page = {};
  std::optional<uint64_t> slot = {};
  std::optional<uint32_t> layer = {};
  bool draft = false;
};

using MaybeFinding = std::optional<HistoryFinding>;

}  // namespace kv
