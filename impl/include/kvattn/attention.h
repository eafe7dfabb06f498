// Purpose: attention over a paged KV cache, for batches that mix prefill, chunks and decode.
//
// Contract:
//  - O[t,h] = softmax_j(scale * <q[t,h], k[j,g]>) v[j,g] over the visible slots j of the request of
//    token t, g = h / (query_heads / kv_heads); LSE[t,h] = ln sum_j exp(scale * <q,k>). Scores,
//    exponentials and sums are fp32. A row that sees nothing gives O = 0 and LSE = -inf.
//  - Slot s of request b lies in page block_table[b][s / page_slots], at offset s % page_slots.
//    Only slots in [key_begin, key_end) are ever read, and block table entries of those slots only.
//  - A mask's slots are counted from the request's first slot, and a query's number from its first
//    query in the call; windows include both ends. Every row of `query` that query_offsets gives to
//    a request is computed, rows of padding too; the rows of O and LSE behind the last are not
//    written.
//  - Live K and V must be finite: a non-finite value may reach every query of its request.
//  - With RoPE the queries are turned before they are used, and rounded to their dtype once more.
//  - A plan says what algorithm runs: its variant, tiles, order, splits and whether tensor cores
//    multiply. Its workspace has O(queries * splits * query heads * (V dimension + 2)) elements,
//    and with RoPE the queries once more; no call allocates.
//  - Needs a device of sm_80 or later. From sm_89 on append() converts to e4m3 and e5m2 by
//    instruction, with the same codes.
//  - Arguments are checked before anything is launched; what device memory holds (lengths, block
//    tables) is trusted. Calls enqueue on `stream` and return.
//  - Results are the same bits in every run, for every page placement, and whether a request is
//    alone or in any batch: a query's slots are divided by a fixed split size, never by the state
//    of the device, unless BatchDescription::multiprocessors asks for it. Also for every division
//    of a prompt into chunks, decode and verify steps with BatchDescription::batch_invariant, or
//    with the variant "reference".
//
// Example (error handling left out):
//   AttentionShape shape{.query_heads = 8, .kv_heads = 2, .head_dim = 64, .page_slots = 16,
//                        .dtype = DType::kF16, .scale = 0.125f};
//   append({.cache = cache, .key = k, .value = v, .token_offsets = o, .first_slots = f}, shape);
//   Plan plan = *make_plan(shape, {.query_lengths = {1, 5}, .kv_lengths = {77, 5}});
//   attend({.cache = cache, .query = q, .query_offsets = o, ...}, plan, shape);
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kvattn/cache_format.h"
#include "kvattn/status.h"
#include "kvattn/tensor.h"

namespace kvattn {

enum class Causal : uint8_t {
  kNone,
  kTopLeft,      // query i sees slot j when j <= i
  kBottomRight,  // query i of q, with n slots, sees slot j when j <= n - q + i
};

enum class MaskEncoding : uint8_t {
  kNone,
  kPackedBits,  // bit k % 32 of uint32 word k / 32 set: slot k visible
  kBoolKeep,    // true: slot visible
  kBoolBlock,   // true: slot hidden
  kAdditive,    // fp32, fp16 or bf16, added to the logit; -inf or the lowest finite value: hidden
};

/// What all calls of one model have in common.
struct AttentionShape {
  int64_t query_heads = 0, kv_heads = 0;  // query_heads is a multiple of kv_heads
  int64_t head_dim = 0;                   // of Q and K: a multiple of 8, up to 256 (see is_latent)
  int64_t value_dim = 0;                  // of V and O, likewise; 0: head_dim
  int64_t page_slots = 0;                 // a power of two, 1..256
  DType dtype = DType::kF16;              // of Q, new K and V, and O: fp16, bf16 or fp32
  float scale = 0;                        // finite; factor of q.k
  Causal causal = Causal::kBottomRight;
  /// Slots further than this from the query's own slot (its causal limit; bottom right when causal
  /// is none) are hidden; inclusive; -1: unlimited.
  int64_t window_left = -1, window_right = -1;
  float softcap = 0;  // 0: none; else logit = softcap * tanh(scale * q.k / softcap)
  MaskEncoding mask = MaskEncoding::kNone;
  DType mask_dtype = DType::kF32;  // of an additive mask
  /// Of K and V in the cache: `dtype`, or 8-bit codes (e4m3, e5m2, int8). append() divides by the
  /// scale, rounds to nearest even and saturates at the largest finite value, int8 at -127 and 127;
  /// attend() takes an element as code * scale. Absent: `dtype`.
  std::optional<DType> cache_dtype = {};
  ScaleGranularity scales = ScaleGranularity::kNone;  // of codes only
  Rope rope;
  /// V is the first value_dim dimensions of K and has no memory of its own: CacheView::value is the
  /// same data with the same strides, and append does not look at the new tokens' V.
  bool value_in_key = false;

  int64_t dim_of_value() const { return value_dim == 0 ? head_dim : value_dim; }
  /// Multi-head latent attention: fp16 and bf16, K of 576 and V of 512 dimensions, value_in_key.
  bool is_latent() const { return value_in_key && head_dim == 576 && value_dim == 512; }
};
inline DType cache_dtype(const AttentionShape& shape) {
  return shape.cache_dtype.value_or(shape.dtype);
}
/// Without the scales of tensors and heads.
inline CacheFormat format_of(const AttentionShape& shape) {
  return {.given = shape.dtype,
          .stored = cache_dtype(shape),
          .scales = shape.scales,
          .rope = shape.rope,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim};
}

/// One layer of a paged cache.
struct CacheView {
  // [pages, page_slots, kv_heads, head_dim or dim_of_value()]; rows 16-byte aligned
  TensorView key, value;
  TensorView block_table;  // int32 [requests, pages_max]
  /// fp32, finite and not 0, of the shape that ScaleGranularity says; data nullptr with kNone.
  /// Scales of slots that a call neither writes nor reads are never read.
  TensorView key_scale, value_scale;
};

struct AppendCall {
  CacheView cache;
  TensorView key, value;     // [tokens, kv_heads, head_dim or dim_of_value()]
  TensorView token_offsets;  // int32 [requests + 1]: tokens of request b are [o[b], o[b+1])
  TensorView first_slots;    // int32 [requests]: slot of its first new token
  TensorView positions;      // int64 [tokens]: position ids; read with RoPE only
  cudaStream_t stream = nullptr;
};

struct AttendCall {
  CacheView cache;
  TensorView query;               // [tokens, query_heads, head_dim]
  TensorView query_offsets;       // int32 [requests + 1]
  TensorView kv_lengths;          // int32 [requests]: slots, padding included
  TensorView key_begin, key_end;  // int32 [requests]: slots that hold real tokens
  TensorView output;              // [tokens, query_heads, dim_of_value()]
  TensorView lse;                 // fp32 [tokens, query_heads], natural logarithm
  /// fp32 [query_heads] each, or data nullptr. ALiBi adds -slope * |anchor - slot| to a logit,
  /// where the anchor is the query's causal limit (bottom right when causal is none). A sink adds
  /// exp(sink) to the sum of exponentials of a row that sees something; LSE counts it.
  TensorView alibi_slopes, sinks;
  /// [B|1, H|1, Q|1, K]: request, query head, query of the request, slot (or word of slots), where
  /// a dimension of 1 is shared by all. Given exactly when AttentionShape::mask says so. Takes away
  /// from what causal limit, window, key_begin and key_end leave visible. Only elements of visible
  /// slots are read; they need no alignment beyond their own.
  TensorView mask;
  /// uint32 [tokens, words]: bit k of a token says whether slot tree_first_slots[b] + k of its
  /// request b is visible; earlier slots are. Takes away, like a mask. data nullptr: none.
  TensorView tree_mask;
  TensorView tree_first_slots;  // int32 [requests]
  TensorView positions;         // int64 [tokens]: of the queries; read with RoPE only
  void* workspace = nullptr;    // Plan::workspace_bytes bytes, 256-byte aligned
  cudaStream_t stream = nullptr;
};

/// States of the same queries over disjoint sets of slots, to become one: what attend() gave for
/// each, called with other key_begin and key_end. A state with LSE -inf is empty and its O is not
/// looked at. Sinks, which every state would count, are given to none.
struct MergeCall {
  TensorView outputs;  // [states, tokens, query_heads, dim_of_value()]
  TensorView lses;     // fp32 [states, tokens, query_heads]
  TensorView output;   // [tokens, query_heads, dim_of_value()]
  TensorView lse;      // fp32 [tokens, query_heads]
  cudaStream_t stream = nullptr;
};

/// A batch as the host knows it.
struct BatchDescription {
  std::span<const int32_t> query_lengths, kv_lengths;  // one for each request
  std::string_view variant = {};                       // forced kernel variant; empty: ours
  uint32_t split_slots = 0;  // size of a split of a query's slots, where they are divided; 0: ours
  /// A query with the same visible slots gets the same bits in prefill, any chunk, decode and
  /// verify, alone and in any batch. Slots are then divided at multiples of one size always.
  bool batch_invariant = false;
  /// Of the device, for throughput mode: a query's slots are divided so that the batch fills them,
  /// and a query's bits depend on its company. 0: they do not. Nothing with batch_invariant.
  uint32_t multiprocessors = 0;
};

/// How a batch will run. Plain data: it may be copied as bytes.
struct Plan {
  uint32_t variant = 0;       // index into the dispatch table; see variant_name
  uint32_t launches = 0;      // bit i: some request needs launch i of the variant
  uint32_t tile_slots = 0;    // slots for each step of the online softmax, at least
  uint32_t ascending = 0;     // 1: every query visits tiles in ascending order
  uint32_t tensor_cores = 0;  // 1: products by mma, P rounded to the 16-bit dtype before P.V
  uint32_t splits = 1;        // parts that a query's slots are divided into, merged at the end
  uint32_t split_slots = 0, splits_max = 1;  // of queries that are divided between blocks
  int64_t requests = 0, tokens = 0;
  int64_t longest_query = 0, longest_kv = 0;  // of a request, where a kernel's workspace needs it
  int64_t partial_units = 0;  // requests or tokens that leave partial results in the workspace
  uint64_t workspace_bytes = 0;
};

/// Ok, or why such calls are refused or not offered.
Status check_shape(const AttentionShape& shape);

/// Chooses the kernel variant. No device work.
StatusOr<Plan> make_plan(const AttentionShape& shape, const BatchDescription& batch);
std::string_view variant_name(const Plan& plan);
/// Every name that BatchDescription::variant may hold, ended by nullptr.
const char* const* variant_names();
/// Of those, the ones that keep the promise of BatchDescription::batch_invariant.
const char* const* invariant_variant_names();

/// Writes K and V of new tokens to their slots.
Status append(const AppendCall& call, const AttentionShape& shape);

/// Writes O and LSE of every query's states together.
Status merge(const MergeCall& call, const AttentionShape& shape);

/// Writes O and LSE of every query.
Status attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape);

}  // namespace kvattn
