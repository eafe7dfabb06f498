#include "impl/bench/workloads.h"

#include <algorithm>

#include "impl/kernels/launch.h"

namespace kvattn::bench {
namespace {

constexpr auto kF16 = DType::kF16, kE4M3 = DType::kE4M3, kE5M2 = DType::kE5M2, kI8 = DType::kI8;
constexpr auto kUnscaled = ScaleGranularity::kNone, kByTensor = ScaleGranularity::kTensor,
               kByHead = ScaleGranularity::kHead, kByToken = ScaleGranularity::kToken,
               kByPage = ScaleGranularity::kPage;

// name, requests, query heads, KV heads, dimensions, queries, slots, window, heads outside, cache,
// its scales, mode, hidden runs
constexpr Workload kWorkloads[] = {
    {"decode_1024", 16, 32, 8, 128, 1, 1024},
    {"decode_4096", 4, 32, 8, 128, 1, 4096},
    {"decode_4096_group8_dim64", 4, 64, 8, 64, 1, 4096},
    {"decode_2048_dim256", 4, 16, 8, 256, 1, 2048},
    {"decode_1024_single_heads", 8, 16, 16, 128, 1, 1024},
    {"decode_1024_heads_outside", 16, 32, 8, 128, 1, 1024, -1, true},
    {"decode_1024_group32", 16, 32, 1, 128, 1, 1024},
    {"decode_1024_e4m3", 16, 32, 8, 128, 1, 1024, -1, false, kE4M3, kByTensor},
    {"decode_1024_e5m2_by_head", 16, 32, 8, 128, 1, 1024, -1, false, kE5M2, kByHead},
    {"decode_1024_int8_by_token", 16, 32, 8, 128, 1, 1024, -1, false, kI8, kByToken},
    {"decode_1024_e4m3_by_page", 16, 32, 8, 128, 1, 1024, -1, false, kE4M3, kByPage},
    {"decode_1024_int8_dim64", 16, 32, 8, 64, 1, 1024, -1, false, kI8, kByTensor},
    {"decode_1024_e4m3_single_heads", 8, 16, 16, 128, 1, 1024, -1, false, kE4M3, kByTensor},
    {"decode_1024_dim72", 16, 32, 8, 72, 1, 1024},
    {"invariant_decode_1024", 4, 32, 8, 128, 1, 1024, -1, false, kF16, kUnscaled, Mode::kInvariant},
    {"invariant_decode_4096_group8_dim64", 2, 64, 8, 64, 1, 4096, -1, false, kF16, kUnscaled,
     Mode::kInvariant},
    {"invariant_decode_1024_e4m3", 4, 32, 8, 128, 1, 1024, -1, false, kE4M3, kByTensor,
     Mode::kInvariant},
    {"invariant_decode_1024_int8_by_token", 4, 32, 8, 128, 1, 1024, -1, false, kI8, kByToken,
     Mode::kInvariant},
    {"ordinary_decode_1024", 4, 32, 8, 128, 1, 1024, -1, false, kF16, kUnscaled, Mode::kOrdinary},
    {"ordinary_decode_1024_e4m3", 4, 32, 8, 128, 1, 1024, -1, false, kE4M3, kByTensor,
     Mode::kOrdinary},
    {"ordinary_decode_4096_group8_dim64", 2, 64, 8, 64, 1, 4096, -1, false, kF16, kUnscaled,
     Mode::kOrdinary},
    {"ordinary_decode_1024_group16", 4, 32, 2, 128, 1, 1024, -1, false, kF16, kUnscaled,
     Mode::kOrdinary},
    {"ordinary_decode_1024_group8_dim256", 4, 16, 2, 256, 1, 1024, -1, false, kF16, kUnscaled,
     Mode::kOrdinary},
    {"ordinary_decode_1024_group8_int8_by_token", 4, 32, 4, 128, 1, 1024, -1, false, kI8, kByToken,
     Mode::kOrdinary},
    {"latent_decode_1024_heads16", 16, 16, 1, 576, 1, 1024},
    {"latent_decode_1024_heads64", 4, 64, 1, 576, 1, 1024},
    {"latent_decode_1024_heads128", 2, 128, 1, 576, 1, 1024},
    {"prefill_512", 1, 8, 2, 128, 512, 512},
    {"prefill_1024", 1, 4, 1, 128, 1024, 1024},
    {"prefill_1024_dim64", 1, 4, 1, 64, 1024, 1024},
    {"prefill_512_dim256", 1, 4, 1, 256, 512, 512},
    {"prefill_512_single_heads", 1, 4, 4, 128, 512, 512},
    {"prefill_1024_window256", 1, 4, 1, 128, 1024, 1024, 255},
    {"prefill_1024_e4m3", 1, 4, 1, 128, 1024, 1024, -1, false, kE4M3, kByTensor},
    {"prefill_1024_hidden_tiles", 1, 4, 1, 128, 1024, 1024, -1, false, kF16, kUnscaled,
     Mode::kThroughput, true},
    {"chunk_256_of_2048", 1, 4, 1, 128, 256, 2048},
    // Blocks of 64 queries end within a tile, whose end some of their warps do not see.
    {"chunk_256_of_2068", 1, 4, 4, 128, 256, 2068},
};

constexpr int64_t kPageSlots = 16;
constexpr int64_t kBytes = 2;      // of an element of Q and O
constexpr int64_t kWarpRows = 16;  // packed rows of a warp
constexpr int64_t kBlockWarps = 4;
constexpr int64_t kStepSlots = 16;

struct Slots {
  int64_t first, last;
  int64_t count() const { return std::max<int64_t>(last - first + 1, 0); }
};

/// What packed rows [first, last] see between them; causal, bottom right.
Slots seen_by(const Workload& w, int64_t first_row, int64_t last_row) {
  const int64_t group = w.query_heads / w.kv_heads, shift = w.slots - w.queries;
  const int64_t first_query = first_row / group, last_query = last_row / group;
  const int64_t first = w.window_left < 0 ? 0 : shift + first_query - w.window_left;
  return {std::max<int64_t>(first, 0), std::min<int64_t>(shift + last_query, w.slots - 1)};
}

bool is_hidden(const Workload& w, int64_t slot) {
  return w.has_hidden_runs && slot / kHiddenRun % 2 == 1;
}

/// Slots of these that no mask hides.
int64_t shown_of(const Workload& w, Slots slots) {
  if (!w.has_hidden_runs) return slots.count();
  int64_t shown = 0;
  for (int64_t slot = slots.first; slot <= slots.last; ++slot) shown += !is_hidden(w, slot);
  return shown;
}

int64_t packed_rows(const Workload& w) { return w.queries * w.query_heads / w.kv_heads; }

/// Slots of the products of the warp with these rows, in a block that sees `block`.
int64_t slots_multiplied(const Workload& w, Slots block, Slots warp) {
  const int64_t tile = mma_tile_slots(w.head_dim);
  int64_t slots = 0;
  for (int64_t base = block.first / tile * tile; base <= block.last; base += tile) {
    if (base > warp.last || base + tile <= warp.first || is_hidden(w, base)) continue;
    slots += std::min(tile, (block.last - base) / kStepSlots * kStepSlots + kStepSlots);
  }
  return slots;
}

/// Q.K of eight slots takes a product for each 16 dimensions; P.V half a product for each eight, in
/// pairs of them.
int64_t products_of_eight_slots(const Workload& w) {
  return (w.head_dim + 15) / 16 + (w.value_dim() + 15) / 16;
}

/// Elements of K and V that a slot has for a KV head.
int64_t slot_elements(const Workload& w) { return w.is_latent() ? w.head_dim : 2 * w.head_dim; }

/// Of K's and V's scales of so many slots, where slots or pages have their own.
int64_t scale_bytes(const Workload& w, int64_t slots) {
  constexpr int64_t kScales = 2 * sizeof(float);
  if (w.scales == kByToken) return slots * kScales;
  return w.scales == kByPage ? slots * kScales / kPageSlots : 0;
}

/// A single query is not worth them to fp16 rows without head groups, nor in ordinary mode.
bool uses_mma(const Workload& w) {
  if (w.queries > 1 || w.mode == Mode::kInvariant) return true;
  return w.mode == Mode::kThroughput && (w.query_heads > w.kv_heads || w.cache != kF16);
}

}  // namespace

const char* mode_name(Mode mode) {
  constexpr const char* kNames[] = {"throughput", "invariant", "ordinary"};
  return kNames[static_cast<int>(mode)];
}

std::span<const Workload> workloads() { return kWorkloads; }

AttentionShape shape_of(const Workload& w) {
  return {.query_heads = w.query_heads,
          .kv_heads = w.kv_heads,
          .head_dim = w.head_dim,
          .value_dim = w.value_dim(),
          .page_slots = kPageSlots,
          .dtype = DType::kF16,
          .scale = w.head_dim == 64    ? 0.125f
                   : w.head_dim == 256 ? 0.0625f
                                       : 0.0883883461f,
          .window_left = w.window_left,
          .mask = w.has_hidden_runs ? MaskEncoding::kBoolKeep : MaskEncoding::kNone,
          .cache_dtype = w.cache,
          .scales = w.scales,
          .value_in_key = w.is_latent()};
}

uint64_t pool_bytes(const Workload& w) {
  return static_cast<uint64_t>(w.requests * w.slots * w.kv_heads * slot_elements(w) *
                               dtype_bytes(w.cache));
}

Least least_of(const Workload& w) {
  const int64_t rows = packed_rows(w), planes = w.requests * w.kv_heads;
  const int64_t block_rows = w.queries > 1 ? kWarpRows * kBlockWarps : rows;
  int64_t slots_read = 0, slots_seen = 0, multiplied = 0;
  for (int64_t r = 0; r < rows; ++r) slots_seen += shown_of(w, seen_by(w, r, r));
  for (int64_t first = 0; first < rows; first += block_rows) {
    const int64_t end = std::min(first + block_rows, rows);
    const Slots block = seen_by(w, first, end - 1);
    slots_read += shown_of(w, block);
    for (int64_t r = first; r < end; r += kWarpRows) {
      multiplied += slots_multiplied(w, block, seen_by(w, r, std::min(r + kWarpRows, end) - 1));
    }
  }
  const auto times = [&](int64_t n) { return static_cast<uint64_t>(planes * n); };
  return {.kv_bytes = times(slots_read * slot_elements(w) * dtype_bytes(w.cache) +
                            scale_bytes(w, slots_read)),
          .query_and_output_bytes = times(rows * (w.head_dim + w.value_dim()) * kBytes),
          .flops = times(slots_seen * 2 * (w.head_dim + w.value_dim())),
          .mma = uses_mma(w) ? times(multiplied / 8 * products_of_eight_slots(w)) : 0};
}

}  // namespace kvattn::bench
