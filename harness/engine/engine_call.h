// Purpose: one call into an engine and what it answered, as plain values: what the model plans, an
// Engine performs, and the judge holds against the model.
// Contract: a Call is complete: an engine in another process needs nothing else. Answers are
// untrusted.
// Example:  const Answer answer = engine.perform(*model.plan(op)->call);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/core/formats.h"
#include "harness/core/id.h"

namespace kv {

namespace call {

struct Admit {
  RequestId request = {};
  uint64_t owner = 0, side_input = 0;
  std::vector<uint64_t> tokens, histories, previous;
  uint64_t slots_max = 0;
  int64_t position_offset = 0;
};
struct StepRow {
  RequestId request = {};
  uint64_t handle = 0, length = 0;
  uint32_t append = 0, queries = 0, speculative = 0;
  DType dtype = DType::kF16;
  std::vector<uint64_t> tokens;               // [append]
  std::vector<uint64_t> histories, previous;  // [max(append, queries)] of the last slots
  std::vector<int32_t> tree_parents;
  uint32_t cancel_before_layer = 0;
};
struct Step {
  std::vector<StepRow> rows;
  bool draft = false;
  uint32_t layout = 0;         // KV_LAYOUT_*
  bool wants_outputs = false;  // attention, not only the appends
};
struct Complete {
  uint64_t step = 0;
};
struct Fork {
  RequestId parent = {}, child = {};
};
struct Reorder {
  std::vector<RequestId> beams, sources;
};
struct Truncate {
  RequestId request = {};
  uint64_t length = 0;
};
struct Shift {
  RequestId request = {};
  uint64_t begin = 0, end = 0;
};
struct Cancel {
  RequestId request = {};
};
struct Finish {
  RequestId request = {};
};
struct Preempt {
  RequestId request = {};
  bool swap = false;
};
struct Resume {
  RequestId request = {};
};
struct Evict {
  uint32_t pages = 0;
};
struct Defrag {};
struct Save {
  RequestId request = {};
};
struct Restore {
  Admit admission;
  std::vector<std::byte> bytes;
};
struct FailAllocation {
  uint64_t nth = 0;
};

}  // namespace call

using Call =
    std::variant<call::Admit, call::Step, call::Complete, call::Fork, call::Reorder, call::Truncate,
                 call::Shift, call::Cancel, call::Finish, call::Preempt, call::Resume, call::Evict,
                 call::Defrag, call::Save, call::Restore, call::FailAllocation>;

enum class CallStatus : uint8_t { kOk, kRefused, kUnsupported, kFailed, kExhausted };  // KV_*
std::string_view status_name(CallStatus status);

struct Answer {
  CallStatus status = CallStatus::kOk;
  std::string message;
  uint64_t handle = 0, length = 0, draft_length = 0;  // admit, fork, resume, restore
  uint64_t step = 0;                                  // number of a launched one
  uint32_t evicted = 0;
  std::vector<std::byte> saved;
};

/// The requests that a call names.
std::vector<RequestId> requests_of(const Call& call);

/// "step of 3 rows, 17 tokens"
std::string describe(const Call& call);

}  // namespace kv
