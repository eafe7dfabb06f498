// Purpose: the attention steps whose cost is measured, and what each of them has to do at least.
// Contract: pure arithmetic, nothing of a device. Bytes and products are of one call of attend().
// Example: for (const Workload& w : workloads()) std::puts(w.name);
#pragma once

#include <cstdint>
#include <span>

#include "kvattn/attention.h"

namespace kvattn::bench {

constexpr int64_t kHiddenRun = 64;

/// How slots are divided: by occupancy; in splits of one size, with bits that no batch and no
/// division into chunks changes; or in such splits, with bits that no batch changes.
enum class Mode : uint8_t { kThroughput, kInvariant, kOrdinary };
const char* mode_name(Mode mode);

/// `requests` equal requests, each with `queries` queries, the last of its `slots` slots.
struct Workload {
  const char* name;
  int64_t requests, query_heads, kv_heads, head_dim;
  int32_t queries, slots;
  int64_t window_left = -1;
  bool heads_outside = false;  // a page is [head, slot, dim] instead of [slot, head, dim]
  DType cache = DType::kF16;   // of K and V
  ScaleGranularity scales = ScaleGranularity::kNone;
  Mode mode = Mode::kThroughput;
  /// A mask of bools for all queries hides every second run of kHiddenRun slots, from the second
  /// on.
  bool has_hidden_runs = false;
  /// A latent cache: `head_dim` of 576, and V the first 512 dimensions of K.
  bool is_latent() const { return head_dim == 576; }
  int64_t value_dim() const { return is_latent() ? 512 : head_dim; }
  bool has_whole_sectors() const { return head_dim * dtype_bytes(cache) % 32 == 0; }
};

std::span<const Workload> workloads();
AttentionShape shape_of(const Workload& w);

/// Of K and V of all slots, without scales; a latent cache has no V of its own.
uint64_t pool_bytes(const Workload& w);

/// What a step costs, whatever the machine.
struct Least {
  /// K and V, each row once for each tile of query rows that sees it: 64 packed rows in prefill, a
  /// request's head group in decode; and the scales of its slots, or of its pages, just as often. A
  /// scale that all slots share is not counted. Bytes.
  uint64_t kv_bytes;
  uint64_t query_and_output_bytes;
  /// 2 (K) + 2 (V) for each visible (query head, query, slot, dimension).
  uint64_t flops;
  /// mma.m16n8k16 over the tiles that a warp of 16 packed rows sees something of; 0 where a step
  /// uses none.
  uint64_t mma;
};
Least least_of(const Workload& w);

}  // namespace kvattn::bench
