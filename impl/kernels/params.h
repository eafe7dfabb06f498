// Purpose: the one parameter struct of each kernel, shared by host and device code.
// Contract: pointers are device pointers that validate.cpp has checked; strides count elements and
// are 64-bit, because pages may lie further apart than 4 GiB. `group` = query heads for each KV
// head.
#pragma once

#include <cstdint>

namespace kvattn {

/// Elements of a cache: the dtype of the queries, or 8-bit codes.
enum class CodeFormat : int32_t { kNone, kE4M3, kE5M2, kI8 };

struct PagedParams {
  void *key, *value;
  const int32_t *block_table;
  int64_t key_page_stride, key_slot_stride, key_head_stride;
  int64_t value_page_stride, value_slot_stride, value_head_stride;
  int64_t block_table_stride;
  int32_t page_shift;  // log2(page_slots)

  // Of codes: an element is code * scale. The scale of a slot's KV head lies at page * page stride
  // + slot * slot stride + head * head stride; strides of 0 share it. nullptr: 1.
  CodeFormat format;
  const float *key_scale, *value_scale;
  int64_t scale_page_stride, scale_slot_stride, scale_head_stride;
};

/// Pair i of the first `dims` dimensions turns by position * theta^(-2i / dims): (i, i + dims / 2),
/// or (2i, 2i + 1) when interleaved.
struct RopeParams {
  const int64_t *positions;  // [tokens]; nullptr: nothing is turned
  double theta;
  int32_t dims;
  bool is_interleaved;
};

struct AppendParams {
  PagedParams cache;
  const void *key, *value;
  const int32_t *token_offsets, *first_slots;
  int64_t key_token_stride, key_head_stride, value_token_stride, value_head_stride;
  int32_t tokens, requests, kv_heads, head_dim, value_dim;
  RopeParams rope;  // of K
};

/// Turns the rows of `query` into dense ones: [tokens, heads, head_dim].
struct RotateParams {
  const void *query;
  void *rotated;
  int64_t query_token_stride, query_head_stride;
  int32_t tokens, heads, head_dim;
  RopeParams rope;
};

/// Element (b, h, i, k) lies at b * request_stride + h * head_stride + i * query_stride + k; a
/// stride of 0 shares a plane.
struct MaskParams {
  enum Format : int32_t { kPackedBits, kBoolKeep, kBoolBlock, kF32, kF16, kBF16 };
  const void *data;  // nullptr: none
  int64_t request_stride, head_stride, query_stride;
  int32_t format;
};

struct TreeParams {
  const uint32_t *words;  // nullptr: none
  const int32_t *first_slots;
  int64_t token_stride;
};

struct AttendParams {
  PagedParams cache;
  const void *query;
  void *output;
  float *lse;
  const int32_t *query_offsets, *kv_lengths, *key_begin, *key_end;
  int64_t query_token_stride, query_head_stride, output_token_stride, output_head_stride;
  int64_t lse_token_stride, lse_head_stride;
  int64_t window_left, window_right;  // -1: unlimited
  int32_t tokens, requests, kv_heads, group;
  int32_t head_dim, value_dim;                 // of Q and K, of V and O
  int32_t query_length_min, query_length_max;  // requests outside are another launch's
  int32_t causal;                              // kvattn::Causal

  // Score modifiers, in base 2: logit = scale_log2 * q.k, or with a soft cap
  // softcap_log2 * tanh(softcap_scale * q.k).
  float scale_log2, softcap_log2, softcap_scale;
  const float *alibi_slopes, *sinks;  // [query_heads] or nullptr, natural units
  MaskParams mask;
  TreeParams tree;

  // Slots [i * split_slots, (i+1) * split_slots) of a request are split i, when a launch divides
  // them between blocks. Partial results of split i of head h of unit u have index
  // (u * query_heads + h) * splits_max + i; a unit is a request, of one query, or a token.
  int32_t split_slots, splits_max;
  bool is_divided, partials_by_token;
  float *partial_output, *partial_state;  // [index][value_dim], [index][max_log2, sum]
};

}  // namespace kvattn
