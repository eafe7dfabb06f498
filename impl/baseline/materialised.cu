// The baseline's kernels.
//
// Version 1: one block for each row that is moved or turned into weights; nothing is fused.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "impl/baseline/materialised.h"
#include "kvattn/attention.h"

namespace kvattn::baseline {
namespace {

constexpr int kThreads = 32;
constexpr unsigned kEveryLane = 0xffffffffu;

__device__ float widened(float x) { return x; }
__device__ float widened(__half x) { return __half2float(x); }
__device__ float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void narrow(float x, float *to) { *to = x; }
__device__ void narrow(float x, __half *to) { *to = __float2half_rn(x); }
__device__ void narrow(float x, __nv_bfloat16 *to) { *to = __float2bfloat16_rn(x); }

struct Plane {
  int32_t request, kv_head;
  int64_t index;
};
__device__ Plane plane_of_block(const Materialised &m) {
  const int64_t index = blockIdx.y;
  return {static_cast<int32_t>(index / m.kv_heads), static_cast<int32_t>(index % m.kv_heads),
          index};
}

/// What a row of a plane is a row of. token -1: of nothing.
struct Row {
  int32_t query, query_count;
  int64_t token, head;
};
__device__ Row row_of_plane(const Materialised &m, const Plane &plane, int64_t row) {
  const int32_t first = m.query_offsets[plane.request];
  Row r;
  r.query = static_cast<int32_t>(row / m.group);
  r.query_count = m.query_offsets[plane.request + 1] - first;
  r.token = r.query < r.query_count ? first + r.query : -1;
  r.head = int64_t{plane.kv_head} * m.group + row % m.group;
  return r;
}

template <class T>
__device__ void copy_or_clear(T *to, const T *from, int32_t count) {
  for (int32_t i = threadIdx.x; i < count; i += kThreads) {
    if (from == nullptr) {
      narrow(0.0f, to + i);
    } else {
      to[i] = from[i];
    }
  }
}

/// Grid: x slots, y planes.
template <class T>
__global__ void gather_slots_kernel(const Materialised m) {
  const Plane plane = plane_of_block(m);
  const int64_t slot = blockIdx.x;
  const T *key = nullptr, *value = nullptr;
  if (slot >= m.key_begin[plane.request] && slot < m.key_end[plane.request]) {
    const int64_t page = m.block_table[plane.request * m.table_stride + slot / m.page_slots];
    const int64_t in_page = slot % m.page_slots;
    key = static_cast<const T *>(m.key.data) + page * m.key.stride[0] + in_page * m.key.stride[1] +
          plane.kv_head * m.key.stride[2];
    value = static_cast<const T *>(m.value.data) + page * m.value.stride[0] +
            in_page * m.value.stride[1] + plane.kv_head * m.value.stride[2];
  }
  const int64_t place = plane.index * m.slots_max + slot;
  copy_or_clear(static_cast<T *>(m.keys) + place * m.dim_k, key, m.dim_k);
  copy_or_clear(static_cast<T *>(m.values) + place * m.dim_v, value, m.dim_v);
}

/// Grid: x rows, y planes.
template <class T>
__global__ void gather_queries_kernel(const Materialised m) {
  const Plane plane = plane_of_block(m);
  const Row row = row_of_plane(m, plane, blockIdx.x);
  const T *query = nullptr;
  if (row.token >= 0) {
    query = static_cast<const T *>(m.query.data) + row.token * m.query.stride[0] +
            row.head * m.query.stride[1];
  }
  T *to = static_cast<T *>(m.queries) + (plane.index * m.rows_max + blockIdx.x) * m.dim_k;
  copy_or_clear(to, query, m.dim_k);
}

/// Everything that decides on one row's logits.
struct Logits {
  const Materialised &m;
  const Plane &plane;
  const Row &row;
  int64_t anchor;

  __device__ Logits(const Materialised &all, const Plane &of, const Row &r)
      : m(all), plane(of), row(r) {
    const bool top_left = m.rules.causal == static_cast<int32_t>(Causal::kTopLeft);
    anchor = top_left ? r.query : int64_t{m.kv_lengths[of.request]} - r.query_count + r.query;
  }

  __device__ bool in_range(int64_t slot) const {
    const Rules &rules = m.rules;
    if (slot < m.key_begin[plane.request] || slot >= m.key_end[plane.request]) return false;
    if (rules.causal != static_cast<int32_t>(Causal::kNone) && slot > anchor) return false;
    if (rules.window_left >= 0 && anchor - slot > rules.window_left) return false;
    if (rules.window_right >= 0 && slot - anchor > rules.window_right) return false;
    return true;
  }

  __device__ bool in_tree(int64_t slot) const {
    if (m.rules.tree == nullptr) return true;
    const int64_t bit = slot - m.rules.tree_first_slots[plane.request];
    if (bit < 0) return true;
    return (m.rules.tree[row.token * m.rules.tree_stride + bit / 32] & 1u << bit % 32) != 0;
  }

  /// What a mask tensor adds to a logit: -inf for hidden.
  __device__ float bias(int64_t slot) const {
    const Strided &mask = m.rules.mask;
    if (mask.data == nullptr) return 0;
    const int64_t at =
        plane.request * mask.stride[0] + row.head * mask.stride[1] + row.query * mask.stride[2];
    switch (static_cast<MaskEncoding>(m.rules.mask_encoding)) {
      case MaskEncoding::kPackedBits: {
        const uint32_t word = static_cast<const uint32_t *>(mask.data)[at + slot / 32];
        return (word & 1u << slot % 32) != 0 ? 0.0f : -INFINITY;
      }
      case MaskEncoding::kBoolKeep:
        return static_cast<const uint8_t *>(mask.data)[at + slot] ? 0.0f : -INFINITY;
      case MaskEncoding::kBoolBlock:
        return static_cast<const uint8_t *>(mask.data)[at + slot] ? -INFINITY : 0.0f;
      default:
        return additive(at + slot);
    }
  }

  __device__ float additive(int64_t at) const {
    const void *data = m.rules.mask.data;
    float value, lowest;
    switch (static_cast<DType>(m.rules.mask_dtype)) {
      case DType::kF16:
        value = widened(static_cast<const __half *>(data)[at]);
        lowest = -65504.0f;
        break;
      case DType::kBF16:
        value = widened(static_cast<const __nv_bfloat16 *>(data)[at]);
        lowest = -3.38953139e38f;
        break;
      default:
        value = static_cast<const float *>(data)[at];
        lowest = -3.40282347e38f;
    }
    return value <= lowest ? -INFINITY : value;
  }

  __device__ float of(float dot, int64_t slot) const {
    if (!in_range(slot) || !in_tree(slot)) return -INFINITY;
    const float hidden = bias(slot);
    if (hidden == -INFINITY) return hidden;
    const Rules &rules = m.rules;
    float logit = dot * rules.scale;
    if (rules.softcap != 0) logit = rules.softcap * tanhf(logit / rules.softcap);
    if (rules.alibi_slopes != nullptr) {
      const float distance = fabsf(static_cast<float>(anchor - slot));
      logit -= rules.alibi_slopes[row.head] * distance;
    }
    return logit + hidden;
  }
};

/// Grid: x rows, y planes. Two passes over the row: its maximum, then weights and their sum.
template <class T>
__global__ void softmax_kernel(const Materialised m) {
  const Plane plane = plane_of_block(m);
  const int64_t place = plane.index * m.rows_max + blockIdx.x;
  const Row row = row_of_plane(m, plane, blockIdx.x);
  float *scores = m.scores + place * m.slots_max;
  T *weights = static_cast<T *>(m.weights) + place * m.slots_max;
  if (row.token < 0) {
    copy_or_clear(weights, static_cast<const T *>(nullptr), static_cast<int32_t>(m.slots_max));
    return;
  }
  const Logits logits(m, plane, row);
  float top = -INFINITY;
  for (int64_t slot = threadIdx.x; slot < m.slots_max; slot += kThreads) {
    scores[slot] = logits.of(scores[slot], slot);
    top = fmaxf(top, scores[slot]);
  }
  for (int step = kThreads / 2; step > 0; step /= 2) {
    top = fmaxf(top, __shfl_xor_sync(kEveryLane, top, step));
  }
  float sum = 0;
  for (int64_t slot = threadIdx.x; slot < m.slots_max; slot += kThreads) {
    const float weight = scores[slot] == -INFINITY ? 0.0f : expf(scores[slot] - top);
    sum += weight;
    narrow(weight, weights + slot);
  }
  for (int step = kThreads / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kEveryLane, sum, step);
  if (threadIdx.x != 0) return;
  float lse = -INFINITY, factor = 0;
  if (sum > 0) {
    const bool has_sink = m.rules.sinks != nullptr;
    const float sink = has_sink ? m.rules.sinks[row.head] : -INFINITY;
    const float highest = fmaxf(top, sink), share = expf(top - highest);
    const float total = sum * share + (has_sink ? expf(sink - highest) : 0.0f);
    lse = highest + logf(total);
    factor = share / total;
  }
  m.factors[place] = factor;
  static_cast<float *>(m.lse.data)[row.token * m.lse.stride[0] + row.head * m.lse.stride[1]] = lse;
}

/// Grid: x rows, y planes.
template <class T>
__global__ void scatter_kernel(const Materialised m) {
  const Plane plane = plane_of_block(m);
  const Row row = row_of_plane(m, plane, blockIdx.x);
  if (row.token < 0) return;
  const int64_t place = plane.index * m.rows_max + blockIdx.x;
  T *to = static_cast<T *>(m.output.data) + row.token * m.output.stride[0] +
          row.head * m.output.stride[1];
  for (int32_t i = threadIdx.x; i < m.dim_v; i += kThreads) {
    narrow(m.sums[place * m.dim_v + i] * m.factors[place], to + i);
  }
}

/// Grid: x tokens, y KV heads.
template <class T>
__global__ void append_kernel(const Appended a) {
  const int32_t token = blockIdx.x, head = blockIdx.y;
  int32_t request = a.requests - 1;
  while (a.token_offsets[request] > token) --request;
  const int64_t slot = a.first_slots[request] + token - a.token_offsets[request];
  const int64_t page = a.block_table[request * a.table_stride + slot / a.page_slots];
  const auto place = [&](const Strided &cache) {
    return static_cast<T *>(cache.data) + page * cache.stride[0] +
           slot % a.page_slots * cache.stride[1] + head * cache.stride[2];
  };
  const auto source = [&](const Strided &rows) {
    return static_cast<const T *>(rows.data) + token * rows.stride[0] + head * rows.stride[1];
  };
  copy_or_clear(place(a.key_cache), source(a.key), a.dim_k);
  copy_or_clear(place(a.value_cache), source(a.value), a.dim_v);
}

/// Grid: x tokens, y query heads.
template <class T>
__global__ void merge_kernel(const States s) {
  const int64_t token = blockIdx.x, head = blockIdx.y;
  const auto lse_of = [&](int32_t state) {
    return static_cast<const float *>(
        s.lses.data)[state * s.lses.stride[0] + token * s.lses.stride[1] + head * s.lses.stride[2]];
  };
  float top = -INFINITY, total = 0;
  for (int32_t i = 0; i < s.states; ++i) top = fmaxf(top, lse_of(i));
  for (int32_t i = 0; i < s.states && top != -INFINITY; ++i) total += expf(lse_of(i) - top);
  T *to = static_cast<T *>(s.output.data) + token * s.output.stride[0] + head * s.output.stride[1];
  for (int32_t d = threadIdx.x; d < s.dim; d += kThreads) {
    float sum = 0;
    for (int32_t i = 0; i < s.states; ++i) {
      if (lse_of(i) == -INFINITY) continue;
      const T *from = static_cast<const T *>(s.outputs.data) + i * s.outputs.stride[0] +
                      token * s.outputs.stride[1] + head * s.outputs.stride[2];
      sum += expf(lse_of(i) - top) * widened(from[d]);
    }
    narrow(total > 0 ? sum / total : 0.0f, to + d);
  }
  if (threadIdx.x != 0) return;
  static_cast<float *>(s.lse.data)[token * s.lse.stride[0] + head * s.lse.stride[1]] =
      total > 0 ? top + logf(total) : -INFINITY;
}

/// Calls launch(T()) with the element type.
template <class Launch>
cudaError_t for_type(DType dtype, Launch launch) {
  switch (dtype) {
    case DType::kF16:
      launch(__half());
      break;
    case DType::kBF16:
      launch(__nv_bfloat16());
      break;
    default:
      launch(float());
  }
  return cudaGetLastError();
}

dim3 grid(int64_t x, int64_t y) { return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)); }

}  // namespace

cudaError_t launch_gather(const Materialised &m, DType dtype, cudaStream_t stream) {
  return for_type(dtype, [&](auto t) {
    gather_slots_kernel<decltype(t)><<<grid(m.slots_max, m.planes()), kThreads, 0, stream>>>(m);
    gather_queries_kernel<decltype(t)><<<grid(m.rows_max, m.planes()), kThreads, 0, stream>>>(m);
  });
}

cudaError_t launch_softmax(const Materialised &m, DType dtype, cudaStream_t stream) {
  return for_type(dtype, [&](auto t) {
    softmax_kernel<decltype(t)><<<grid(m.rows_max, m.planes()), kThreads, 0, stream>>>(m);
  });
}

cudaError_t launch_scatter(const Materialised &m, DType dtype, cudaStream_t stream) {
  return for_type(dtype, [&](auto t) {
    scatter_kernel<decltype(t)><<<grid(m.rows_max, m.planes()), kThreads, 0, stream>>>(m);
  });
}

cudaError_t launch_merge(const States &s, DType dtype, cudaStream_t stream) {
  return for_type(dtype, [&](auto t) {
    merge_kernel<decltype(t)><<<grid(s.tokens, s.query_heads), kThreads, 0, stream>>>(s);
  });
}

cudaError_t launch_append(const Appended &a, DType dtype, cudaStream_t stream) {
  return for_type(dtype, [&](auto t) {
    append_kernel<decltype(t)><<<grid(a.tokens, a.kv_heads), kThreads, 0, stream>>>(a);
  });
}

}  // namespace kvattn::baseline
