// Purpose: an engine as the judge speaks to it, wherever it runs.
// Contract: calls are performed in order. snapshot() and read() are asked between operations; an
// engine that offers none is unsupported there. Nothing that an engine answers is trusted.
// Example:  Answer a = engine.perform(call); Result<EngineState> s = engine.snapshot(kTarget);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/engine/engine_call.h"
#include "harness/engine/engine_state.h"

namespace kv {

enum class CacheKind : uint8_t { kTarget, kDraft };  // KV_CACHE_*

/// Where K and V of one layer are read: consecutive slots of a request, or of a page.
struct SlotPlace {
  bool by_page = false;
  uint32_t holder = 0;  // request, or page
  uint64_t slot = 0;    // the first, of the request or of the page
  uint32_t layer = 0;
  uint32_t slots = 1;
  bool operator==(const SlotPlace&) const = default;
};

/// No bytes unless all of the slots can be read.
struct SlotBytes {
  CallStatus status = CallStatus::kOk;
  std::vector<std::byte> key, value;            // [slots, kv_heads, head_dim], kv_dtype
  std::vector<float> key_scales, value_scales;  // [slots, kv_heads]; none without scales
};

/// What a step attended to, of each layer, rows one after another.
struct StepOutputs {
  std::vector<std::vector<std::byte>> outputs;  // [sum of queries, query_heads, head_dim_v]
  std::vector<std::vector<float>> lses;         // as conventions.lse_layout says
};

/// What the device beneath says of the code that it was given.
struct DeviceReport {
  std::vector<std::string> findings = {};  // that fail a history, in words
  std::string unsupported = {};            // why it does not run the code at all; "": it does
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Answer perform(const Call& call) = 0;
  /// Of the time after the last perform(); asked for once.
  virtual Result<EngineState> snapshot(CacheKind cache) = 0;
  virtual std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) = 0;
  /// Whether shift turns the K that it moves to the position of its new slot.
  virtual bool shift_turns() const { return false; }
  /// Of a step that asked for outputs and has ended; given once.
  virtual StepOutputs take_outputs(uint64_t) { return {}; }
  /// Since this was last asked.
  virtual DeviceReport take_device_report() { return {}; }
};

}  // namespace kv
