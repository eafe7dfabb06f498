#include "impl/dispatch/validate.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kvattn {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kVectorElements = 8;  // that a lane reads at once, of codes too
constexpr int64_t kSplitsMax = 65535;   // the grid's third dimension
constexpr int64_t kIndexMax = std::numeric_limits<int32_t>::max();

enum class Use { kRead, kWritten };

/// What a tensor must be. kAny in a dimension accepts every size.
struct Expected {
  static constexpr int64_t kAny = -1;
  const char* name;
  DType dtype;
  int rank;
  std::array<int64_t, 4> shape;
  int64_t row_alignment_bytes;  // of the data pointer and of every stride but the innermost
  Use use = Use::kRead;
};

std::string shape_text(const std::array<int64_t, 4>& shape, int rank) {
  std::string text = "[";
  for (int i = 0; i < rank; ++i) {
    text += i ? ", " : "";
    text += shape[i] == Expected::kAny ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

Status check_sizes(const TensorView& t, const Expected& want) {
  if (t.dtype != want.dtype) {
    return refused(want.name, ": expected dtype ", dtype_name(want.dtype), ", got ",
                   dtype_name(t.dtype));
  }
  bool fits = t.rank == want.rank;
  for (int i = 0; fits && i < want.rank; ++i) {
    fits = t.shape[i] >= 0 && (want.shape[i] == Expected::kAny || t.shape[i] == want.shape[i]);
  }
  if (!fits) {
    return refused(want.name, ": expected shape ", shape_text(want.shape, want.rank), ", got ",
                   shape_text(t.shape, std::clamp(t.rank, 0, 4)));
  }
  return {};
}

bool is_empty(const TensorView& t) {
  for (int i = 0; i < t.rank; ++i) {
    if (t.shape[i] == 0) return true;
  }
  return false;
}

/// The last element's offset in bytes must fit 63 bits, and written elements must not coincide.
Status check_strides(const TensorView& t, const Expected& want) {
  const int inner = t.rank - 1;
  if (t.shape[inner] > 1 && t.strides[inner] != 1) {
    return refused(want.name, ": expected innermost stride 1, got ", t.strides[inner]);
  }
  int64_t last = 0;
  for (int i = 0; i < t.rank; ++i) {
    int64_t span = 0;
    if (t.shape[i] <= 1) continue;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last) || last > (INT64_MAX >> 4)) {
      return refused(want.name, ": stride ", t.strides[i], " of dimension ", i, " with size ",
                     t.shape[i], " leaves the range of offsets; expected 0 or more elements and ",
                     "less than 2^59 in all");
    }
    if (want.use == Use::kWritten && t.strides[i] == 0) {
      return refused(want.name, ": dimension ", i, " of a written tensor has stride 0");
    }
  }
  return {};
}

Status check_alignment(const TensorView& t, const Expected& want) {
  const int64_t alignment = want.row_alignment_bytes;
  if (reinterpret_cast<uintptr_t>(t.data) % alignment != 0) {
    return refused(want.name, ": data pointer ", t.data, " is not ", alignment, "-byte aligned");
  }
  for (int i = 0; i + 1 < t.rank; ++i) {
    if (t.shape[i] > 1 && t.strides[i] * dtype_bytes(t.dtype) % alignment != 0) {
      return unsupported(want.name, ": stride ", t.strides[i], " of dimension ", i,
                         " is not a multiple of ", alignment, " bytes");
    }
  }
  return {};
}

Status check_tensor(const TensorView& t, const Expected& want) {
  KVATTN_RETURN_IF_ERROR(check_sizes(t, want));
  if (is_empty(t)) return {};
  KVATTN_RETURN_IF_ERROR(check_strides(t, want));
  if (t.data == nullptr) return refused(want.name, ": data pointer is null");
  return check_alignment(t, want);
}

Status check_index_tensor(const char* name, const TensorView& t, int64_t size) {
  return check_tensor(t, {name, DType::kI32, 1, {size}, dtype_bytes(DType::kI32)});
}

/// An optional fp32 tensor with a value for each query head.
Status check_head_tensor(const char* name, const TensorView& t, const AttentionShape& shape) {
  if (t.data == nullptr) return {};
  return check_tensor(t, {name, DType::kF32, 1, {shape.query_heads}, dtype_bytes(DType::kF32)});
}

DType mask_dtype(const AttentionShape& shape) {
  if (shape.mask == MaskEncoding::kAdditive) return shape.mask_dtype;
  return shape.mask == MaskEncoding::kPackedBits ? DType::kU32 : DType::kBool;
}

/// How many slots and queries it must cover lies in device memory and is trusted.
Status check_mask(const AttendCall& call, const AttentionShape& shape, int64_t requests) {
  const TensorView& t = call.mask;
  if (shape.mask == MaskEncoding::kNone) {
    return t.data == nullptr ? Status() : refused("mask: given, but the shape says that none is");
  }
  if (t.data == nullptr) return refused("mask: the shape says that it is given, got null");
  const DType dtype = mask_dtype(shape);
  const auto size = [&](int i, int64_t whole) {
    return t.rank == 4 && t.shape[i] == 1 ? 1 : whole;
  };
  return check_tensor(
      t, {"mask",
          dtype,
          4,
          {size(0, requests), size(1, shape.query_heads), Expected::kAny, Expected::kAny},
          dtype_bytes(dtype)});
}

Status check_tree(const AttendCall& call, int64_t tokens, int64_t requests) {
  if (call.tree_mask.data == nullptr) return {};
  KVATTN_RETURN_IF_ERROR(check_tensor(
      call.tree_mask,
      {"tree_mask", DType::kU32, 2, {tokens, Expected::kAny}, dtype_bytes(DType::kU32)}));
  return check_index_tensor("tree_first_slots", call.tree_first_slots, requests);
}

/// The scales of K or of V, as the granularity has them.
Status check_scales(const char* name, const TensorView& t, const AttentionShape& shape,
                    int64_t pages) {
  const auto check = [&](int rank, std::array<int64_t, 4> sizes) {
    return check_tensor(t, {name, DType::kF32, rank, sizes, dtype_bytes(DType::kF32)});
  };
  switch (shape.scales) {
    case ScaleGranularity::kNone:
      return t.data == nullptr ? Status()
                               : refused(name, ": given, but the shape says that none is");
    case ScaleGranularity::kTensor:
      return check(1, {1});
    case ScaleGranularity::kHead:
      return check(1, {shape.kv_heads});
    case ScaleGranularity::kToken:
      return check(2, {pages, shape.page_slots});
    default:
      return check(1, {pages});
  }
}

Status check_cache(const CacheView& cache, const AttentionShape& shape, int64_t requests, Use use) {
  std::array<int64_t, 4> slots = {Expected::kAny, shape.page_slots, shape.kv_heads, shape.head_dim};
  const DType dtype = cache_dtype(shape);
  const int64_t alignment = std::min(kVectorBytes, kVectorElements * dtype_bytes(dtype));
  KVATTN_RETURN_IF_ERROR(check_tensor(cache.key, {"key cache", dtype, 4, slots, alignment, use}));
  slots[3] = shape.dim_of_value();
  KVATTN_RETURN_IF_ERROR(
      check_tensor(cache.value, {"value cache", dtype, 4, slots, alignment, use}));
  if (shape.value_in_key &&
      (cache.value.data != cache.key.data || cache.value.strides != cache.key.strides)) {
    return refused("value cache: expected the memory and the strides of the key cache, got other");
  }
  if (cache.key.shape[0] != cache.value.shape[0] || cache.key.shape[0] > kIndexMax) {
    return refused("cache: expected as many key pages as value pages, below 2^31, got ",
                   cache.key.shape[0], " and ", cache.value.shape[0]);
  }
  const int64_t pages = cache.key.shape[0];
  KVATTN_RETURN_IF_ERROR(check_scales("key_scale", cache.key_scale, shape, pages));
  KVATTN_RETURN_IF_ERROR(check_scales("value_scale", cache.value_scale, shape, pages));
  return check_tensor(
      cache.block_table,
      {"block table", DType::kI32, 2, {requests, Expected::kAny}, dtype_bytes(DType::kI32)});
}

Status check_positions(const TensorView& t, const AttentionShape& shape, int64_t tokens) {
  if (shape.rope.pairing == Rope::Pairing::kNone) return {};
  return check_tensor(t, {"positions", DType::kI64, 1, {tokens}, dtype_bytes(DType::kI64)});
}

/// Number of requests, taken from a tensor of offsets.
StatusOr<int64_t> requests_of(const char* name, const TensorView& offsets) {
  if (offsets.rank != 1 || offsets.shape[0] < 1 || offsets.shape[0] > kIndexMax) {
    return refused(name, ": expected shape [requests + 1], got ",
                   shape_text(offsets.shape, std::clamp(offsets.rank, 0, 4)));
  }
  return offsets.shape[0] - 1;
}

Status check_token_count(const AttentionShape& shape, int64_t tokens, int64_t requests) {
  const int64_t group = shape.query_heads / shape.kv_heads;
  if (tokens > kIndexMax / group || tokens * group > kIndexMax - requests) {
    return unsupported("batch: expected less than 2^31 query rows for each KV head, got ", tokens,
                       " tokens of ", group, " heads in ", requests, " requests");
  }
  if (tokens > 0 && requests == 0) return refused("batch: ", tokens, " tokens of no request");
  return {};
}

}  // namespace

Status check_batch(const AttentionShape& shape, const BatchDescription& batch) {
  KVATTN_RETURN_IF_ERROR(check_shape(shape));
  if (batch.query_lengths.size() != batch.kv_lengths.size()) {
    return refused("batch: expected as many query lengths as KV lengths, got ",
                   batch.query_lengths.size(), " and ", batch.kv_lengths.size());
  }
  int64_t tokens = 0;
  for (size_t b = 0; b < batch.query_lengths.size(); ++b) {
    if (batch.query_lengths[b] < 0 || batch.kv_lengths[b] < 0) {
      return refused("batch: expected lengths of 0 or more, got ", batch.query_lengths[b],
                     " queries and ", batch.kv_lengths[b], " slots in request ", b);
    }
    tokens += batch.query_lengths[b];
  }
  const auto requests = static_cast<int64_t>(batch.query_lengths.size());
  KVATTN_RETURN_IF_ERROR(check_token_count(shape, tokens, requests));
  const int64_t longest =
      requests == 0 ? 0 : *std::max_element(batch.kv_lengths.begin(), batch.kv_lengths.end());
  const int64_t split = batch.split_slots == 0 ? kSplitSlots : batch.split_slots;
  if (split > kIndexMax || longest / split >= kSplitsMax) {
    return unsupported("batch: expected splits of less than 2^31 slots, and at most ", kSplitsMax,
                       " of them, got ", split, " slots with ", longest, " slots in a request");
  }
  return {};
}

Status check_append(const AppendCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_shape(shape));
  StatusOr<int64_t> requests = requests_of("token_offsets", call.token_offsets);
  if (!requests.ok()) return requests.status();
  const int64_t tokens = call.key.rank == 3 ? call.key.shape[0] : 0;
  KVATTN_RETURN_IF_ERROR(check_token_count(shape, tokens, *requests));
  KVATTN_RETURN_IF_ERROR(check_cache(call.cache, shape, *requests, Use::kWritten));
  std::array<int64_t, 4> rows = {tokens, shape.kv_heads, shape.head_dim};
  KVATTN_RETURN_IF_ERROR(check_positions(call.positions, shape, tokens));
  KVATTN_RETURN_IF_ERROR(check_tensor(call.key, {"key", shape.dtype, 3, rows, kVectorBytes}));
  rows[2] = shape.dim_of_value();
  if (!shape.value_in_key) {
    KVATTN_RETURN_IF_ERROR(check_tensor(call.value, {"value", shape.dtype, 3, rows, kVectorBytes}));
  }
  KVATTN_RETURN_IF_ERROR(check_index_tensor("token_offsets", call.token_offsets, *requests + 1));
  return check_index_tensor("first_slots", call.first_slots, *requests);
}

Status check_merge(const MergeCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_shape(shape));
  const int64_t states = call.outputs.rank == 4 ? call.outputs.shape[0] : 0;
  const int64_t tokens = call.outputs.rank == 4 ? call.outputs.shape[1] : 0;
  if (states < 1 || states > kIndexMax) {
    return refused(
        "outputs: expected shape [1 or more states, tokens, query heads, dimensions], got ",
        shape_text(call.outputs.shape, std::clamp(call.outputs.rank, 0, 4)));
  }
  KVATTN_RETURN_IF_ERROR(check_token_count(shape, tokens, 1));
  const int64_t heads = shape.query_heads, dim = shape.dim_of_value();
  constexpr int64_t kFloat = dtype_bytes(DType::kF32);
  KVATTN_RETURN_IF_ERROR(check_tensor(
      call.outputs, {"outputs", shape.dtype, 4, {states, tokens, heads, dim}, kVectorBytes}));
  KVATTN_RETURN_IF_ERROR(
      check_tensor(call.lses, {"lses", DType::kF32, 3, {states, tokens, heads}, kFloat}));
  KVATTN_RETURN_IF_ERROR(check_tensor(
      call.output, {"output", shape.dtype, 3, {tokens, heads, dim}, kVectorBytes, Use::kWritten}));
  return check_tensor(call.lse, {"lse", DType::kF32, 2, {tokens, heads}, kFloat, Use::kWritten});
}

Status check_attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_shape(shape));
  StatusOr<int64_t> requests = requests_of("query_offsets", call.query_offsets);
  if (!requests.ok()) return requests.status();
  const int64_t tokens = call.query.rank == 3 ? call.query.shape[0] : 0;
  KVATTN_RETURN_IF_ERROR(check_token_count(shape, tokens, *requests));
  if (plan.requests != *requests || plan.tokens != tokens) {
    return refused("plan: made for ", plan.requests, " requests with ", plan.tokens,
                   " tokens, got ", *requests, " with ", tokens);
  }
  KVATTN_RETURN_IF_ERROR(check_cache(call.cache, shape, *requests, Use::kRead));
  std::array<int64_t, 4> rows = {tokens, shape.query_heads, shape.head_dim};
  KVATTN_RETURN_IF_ERROR(check_tensor(call.query, {"query", shape.dtype, 3, rows, kVectorBytes}));
  rows[2] = shape.dim_of_value();
  KVATTN_RETURN_IF_ERROR(
      check_tensor(call.output, {"output", shape.dtype, 3, rows, kVectorBytes, Use::kWritten}));
  KVATTN_RETURN_IF_ERROR(check_tensor(call.lse, {"lse",
                                                 DType::kF32,
                                                 2,
                                                 {tokens, shape.query_heads},
                                                 dtype_bytes(DType::kF32),
                                                 Use::kWritten}));
  KVATTN_RETURN_IF_ERROR(check_index_tensor("query_offsets", call.query_offsets, *requests + 1));
  KVATTN_RETURN_IF_ERROR(check_index_tensor("kv_lengths", call.kv_lengths, *requests));
  KVATTN_RETURN_IF_ERROR(check_index_tensor("key_begin", call.key_begin, *requests));
  KVATTN_RETURN_IF_ERROR(check_index_tensor("key_end", call.key_end, *requests));
  KVATTN_RETURN_IF_ERROR(check_positions(call.positions, shape, tokens));
  KVATTN_RETURN_IF_ERROR(check_head_tensor("alibi_slopes", call.alibi_slopes, shape));
  KVATTN_RETURN_IF_ERROR(check_head_tensor("sinks", call.sinks, shape));
  KVATTN_RETURN_IF_ERROR(check_mask(call, shape, *requests));
  KVATTN_RETURN_IF_ERROR(check_tree(call, tokens, *requests));
  if (plan.workspace_bytes > 0 &&
      (call.workspace == nullptr || reinterpret_cast<uintptr_t>(call.workspace) % 256 != 0)) {
    return refused("workspace: expected ", plan.workspace_bytes,
                   " bytes at a 256-byte aligned address, got ", call.workspace);
  }
  return {};
}

}  // namespace kvattn
