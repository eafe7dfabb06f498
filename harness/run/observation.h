// Purpose: what a worker saw of the code under test, and nothing that it concluded.
// Contract: plain data that crosses from the worker process to the parent; the parent treats it as
// untrusted bytes and bounds everything when it reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/formats.h"
#include "harness/core/id.h"
#include "harness/run/shared_bytes.h"

namespace kv {

/// Every byte of the output and of the LSE before an attend call: a NaN in every float format, so
/// that an element which nobody wrote cannot pass for a value.
inline constexpr std::byte kOutputCanary{0xff};

/// The code of every element of a pool slot that nothing has written yet. On the CPU device the
/// bytes of kUndefined are marked as undefined besides.
inline uint32_t pool_poison_code(Poison poison, DType type) {
  if (poison != Poison::kFiniteHuge) return 0xffffffffu >> (32 - 8 * dtype_bytes(type));
  const double half = dtype_max(type) / 2;
  return encode(type, half < 30000 ? half : 30000);
}

/// A finding of the CPU device (see kv_simt_finding), as the parent keeps it.
struct DeviceFinding {
  uint32_t kind = 0;  // KV_SIMT_KIND_*
  uint64_t launch = 0;
  std::string kernel, instruction, source_file, inlined_at_file, message;
  uint32_t ptx_line = 0, source_line = 0, inlined_at_line = 0;
  uint32_t block[3] = {0, 0, 0}, thread[3] = {0, 0, 0};
  uint64_t address = 0, allocation_base = 0, allocation_bytes = 0, allocation_number = 0;
  uint32_t access_bytes = 0, space = 0;
  uint64_t repeats = 0;
  uint64_t not_kept = 0;  // other findings of the same operation that the device only counted
};

/// Declared facts of the plugin that the judge needs (kv_conventions, name).
struct PluginFacts {
  std::string name, version;
  uint32_t lse_base = 0, lse_layout = 0, empty_row_lse = 0, pad_rows = 0, promises = 0;
  std::vector<std::string> variants = {};  // that a case may force
};

/// Which variant a plugin plans for a kind of batch, and which ones it lets a case force.
struct Dispatch {
  DType type = DType::kF16, cache = DType::kF16;
  std::string batch;   // "decode", "prefill", "mixed", "latent decode"
  std::string chosen;  // "": it does not offer such batches
  std::vector<std::string> forceable;
  bool operator==(const Dispatch&) const = default;
};

/// kv_profile of the plan that ran.
struct DeclaredProfile {
  uint32_t tile_slots = 0, order = 0, accumulate = 0, row_sum_of_rounded = 0;
  uint32_t maximum_is_exact = 0, splits = 1;
  uint32_t probability_code = 2, probability_bits = 32;  // DLPack type code and bits
  bool operator==(const DeclaredProfile&) const = default;
};

/// Everything a step returned for one layer.
struct LayerResult {
  uint32_t layer = 0;
  std::vector<std::byte> output;  // [tokens][query_heads][head_dim_v], output dtype, dense
  std::vector<float> lse;         // [tokens][query_heads], natural log or base 2 as declared
};

/// The same step in parts, and their merge (exec.cascade_slots), of one layer.
struct CascadeResult {
  uint32_t layer = 0;
  std::vector<LayerResult> parts;
  LayerResult merged;
};

/// A page of one layer whose bytes differ from when they were last reported.
struct PageImage {
  uint32_t layer = 0;
  bool value = false;  // false: K, true: V
  PageId page;
  SharedBytes bytes;  // [page_slots][kv_heads][head_dim], dense
};

/// Bytes that had to stay as they were, and did not.
struct Trespass {
  std::string tensor;  // "query", "block_table", "output slack", ...
  uint64_t offset_bytes = 0;
  uint64_t bytes_changed = 0;
  uint8_t want = 0, got = 0;  // the first changed byte
};

/// A repeated attend call (exec.repeat) that gave other bits than the first. On the CPU device
/// repeat r runs with schedule seed exec.schedule_seed + r.
struct RepeatDifference {
  uint32_t layer = 0, repeat = 0;
  bool lse = false;      // false: the output
  uint64_t element = 0;  // first one that differs, in LayerResult's order
  uint64_t elements_changed = 0;
  uint32_t want_bits = 0, got_bits = 0;
};

enum class OpStatus : uint8_t { kOk, kRefused, kUnsupported, kFailed, kNotRun };

struct OpObservation {
  uint32_t op_index = 0;
  OpStatus status = OpStatus::kNotRun;
  std::string message;
  std::string variant;
  DeclaredProfile profile;
  std::vector<LayerResult> layers;      // of a Step
  std::vector<CascadeResult> cascades;  // of a Step, one for each layer, where the case asks for it
  std::vector<PageImage> pages;         // changed by this operation
  std::vector<Trespass> trespasses;
  std::vector<RepeatDifference> repeat_differences;
  std::vector<DeviceFinding> findings;  // new since the previous operation
};

/// How the worker ended.
enum class RunOutcome : uint8_t {
  kCompleted,
  kUnsupported,
  kCrashed,
  kHung,
  kMemory,
  kEnvironment
};

struct RunEnd {
  RunOutcome outcome = RunOutcome::kCompleted;
  std::string message;    // signal name, limit, reason
  uint32_t op_index = 0;  // operation that was running
  uint64_t warp_instructions = 0;
  std::vector<DeviceFinding> findings;  // raised at the end (leaks) or while crashing
  std::string output;  // the last of what the code under test printed; never compared
};

struct Observation {
  PluginFacts plugin;
  std::vector<OpObservation> ops;
  RunEnd end;
};

}  // namespace kv
