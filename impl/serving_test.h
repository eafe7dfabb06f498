// Purpose: a small inference server around kvattn, for its tests: a pool, requests that grow, steps
// that append and attend, and what attention should have given, from the definition, in double.
// Contract: K, V and Q of a token are a hash of (request's seed, slot, head, dimension); PAD slots
// hold NaN. A CUDA error or a refusal fails the test and ends it by an exception.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kvattn/attention.h"
#include "kvattn/pool.h"

namespace kvattn::testing {

inline void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}
inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
template <class T>
T take(StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

/// Device memory with the bytes of a host vector.
template <class T>
DeviceMemory upload(const std::vector<T>& host) {
  DeviceMemory memory = take(allocate_device(std::max<size_t>(host.size(), 1) * sizeof(T)));
  check(cudaMemcpy(memory.get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}
template <class T>
std::vector<T> download(const DeviceMemory& memory, size_t count) {
  std::vector<T> host(count);
  check(cudaMemcpy(host.data(), memory.get(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

inline float decode(DType dtype, const uint8_t* p) {
  if (dtype == DType::kF32) {
    float x;
    std::memcpy(&x, p, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return dtype == DType::kF16 ? __half2float(__ushort_as_half(bits))
                              : __bfloat162float(__ushort_as_bfloat16(bits));
}
inline void encode(DType dtype, float x, std::vector<uint8_t>& out) {
  uint8_t bytes[4];
  const uint16_t bits = dtype == DType::kF16 ? __half_as_ushort(__float2half(x))
                                             : __bfloat16_as_ushort(__float2bfloat16(x));
  std::memcpy(bytes, &bits, 2);
  if (dtype == DType::kF32) std::memcpy(bytes, &x, 4);
  out.insert(out.end(), bytes, bytes + dtype_bytes(dtype));
}

enum class Role : uint64_t { kQuery, kKey, kValue };

struct Request {
  uint64_t seed = 0;
  int32_t pad_left = 0;   // slots [0, pad_left) hold no token
  int32_t pad_right = 0;  // nor do the last ones
  int32_t slots = 0;
  std::vector<Page> pages = {};
};

/// In [-1, 1), with few enough bits to be exact in every dtype.
inline float element(const Request& r, Role role, int64_t slot, int64_t head, int64_t dim) {
  uint64_t x = r.seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(role);
  for (int64_t part : {slot, head, dim}) {
    x = (x ^ static_cast<uint64_t>(part)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29;
  }
  return static_cast<float>(static_cast<int64_t>(x >> 57) - 64) / 64;
}

/// Appends `append` slots to a request, then attends with the queries of its last `queries` slots.
struct StepRow {
  Request* request;
  int32_t append, queries;
};

struct StepResult {
  std::string variant;
  bool rounds_weights;             // P is rounded to the dtype before P.V
  std::vector<float> output, lse;  // [tokens, heads, head_dim], [tokens, heads]
  std::vector<uint8_t> output_bytes;
};

struct StepOptions {
  std::string_view variant = {};
  uint32_t split_slots = 0;
};

/// Score modifiers that are data; empty: none.
struct HeadModifiers {
  std::vector<float> alibi_slopes = {}, sinks = {};  // [query_heads]
};

class Server {
 public:
  Server(const AttentionShape& shape, int64_t pages, HeadModifiers modifiers = {})
      : shape_(shape),
        modifiers_(std::move(modifiers)),
        pool_(take(KvPool::create(shape, {.layers = 1, .pages = pages}))) {}

  StepResult step(const std::vector<StepRow>& rows, StepOptions options = {}) {
    BlockTable table = grow(rows);
    append_tokens(rows, table);
    return attend_rows(rows, table, options);
  }

  const AttentionShape& shape() const { return shape_; }
  const HeadModifiers& modifiers() const { return modifiers_; }

 private:
  BlockTable grow(const std::vector<StepRow>& rows) {
    std::vector<std::span<const Page>> pages;
    for (const StepRow& row : rows) {
      Request& r = *row.request;
      r.slots += row.append;
      const int64_t need = (r.slots + shape_.page_slots - 1) / shape_.page_slots;
      for (Page page : take(pool_.acquire(need - static_cast<int64_t>(r.pages.size())))) {
        r.pages.push_back(page);
      }
      pages.push_back(r.pages);
    }
    BlockTable table = take(BlockTable::create(
        {.requests = static_cast<int64_t>(rows.size()), .pages_max = pool_pages_max(rows)}));
    check(table.upload(pages, nullptr));
    return table;
  }

  static int64_t pool_pages_max(const std::vector<StepRow>& rows) {
    size_t longest = 1;
    for (const StepRow& row : rows) longest = std::max(longest, row.request->pages.size());
    return static_cast<int64_t>(longest);
  }

  void append_tokens(const std::vector<StepRow>& rows, const BlockTable& table) {
    std::vector<uint8_t> key, value;
    std::vector<int32_t> offsets = {0}, first;
    for (const StepRow& row : rows) {
      const Request& r = *row.request;
      first.push_back(r.slots - row.append);
      offsets.push_back(offsets.back() + row.append);
      for (int32_t slot = first.back(); slot < r.slots; ++slot) {
        const bool pad = slot < r.pad_left || slot >= r.slots - r.pad_right;
        for (int64_t i = 0; i < shape_.kv_heads * shape_.head_dim; ++i) {
          const int64_t head = i / shape_.head_dim, dim = i % shape_.head_dim;
          encode(shape_.dtype, pad ? NAN : element(r, Role::kKey, slot, head, dim), key);
          encode(shape_.dtype, pad ? NAN : element(r, Role::kValue, slot, head, dim), value);
        }
      }
    }
    const std::array<int64_t, 4> size = {offsets.back(), shape_.kv_heads, shape_.head_dim};
    const DeviceMemory k = upload(key), v = upload(value), o = upload(offsets), f = upload(first);
    check(append({.cache = take(pool_.layer(0, table)),
                  .key = dense_view(k.get(), shape_.dtype, size, 3),
                  .value = dense_view(v.get(), shape_.dtype, size, 3),
                  .token_offsets = index_view(o, offsets),
                  .first_slots = index_view(f, first)},
                 shape_));
    check(cudaDeviceSynchronize());
  }

  StepResult attend_rows(const std::vector<StepRow>& rows, const BlockTable& table,
                         const StepOptions& options) {
    std::vector<int32_t> offsets = {0}, queries, lengths, begin, end;
    std::vector<uint8_t> q;
    for (const StepRow& row : rows) {
      const Request& r = *row.request;
      offsets.push_back(offsets.back() + row.queries);
      queries.push_back(row.queries);
      lengths.push_back(r.slots);
      begin.push_back(r.pad_left);
      end.push_back(r.slots - r.pad_right);
      for (int32_t slot = r.slots - row.queries; slot < r.slots; ++slot) {
        for (int64_t i = 0; i < shape_.query_heads * shape_.head_dim; ++i) {
          encode(shape_.dtype,
                 element(r, Role::kQuery, slot, i / shape_.head_dim, i % shape_.head_dim), q);
        }
      }
    }
    const Plan plan = take(make_plan(shape_, {.query_lengths = queries,
                                              .kv_lengths = lengths,
                                              .variant = options.variant,
                                              .split_slots = options.split_slots}));
    const size_t out = q.size(), lse_count = offsets.back() * shape_.query_heads;
    const DeviceMemory query = upload(q), o = upload(offsets), n = upload(lengths),
                       b = upload(begin), e = upload(end),
                       output = take(allocate_device(std::max<size_t>(out, 1))),
                       lse = take(allocate_device(std::max<size_t>(lse_count, 1) * 4)),
                       workspace = take(allocate_device(plan.workspace_bytes + 1)),
                       slopes = upload(modifiers_.alibi_slopes), sinks = upload(modifiers_.sinks);
    const std::array<int64_t, 4> size = {offsets.back(), shape_.query_heads, shape_.head_dim};
    check(attend({.cache = take(pool_.layer(0, table)),
                  .query = dense_view(query.get(), shape_.dtype, size, 3),
                  .query_offsets = index_view(o, offsets),
                  .kv_lengths = index_view(n, lengths),
                  .key_begin = index_view(b, begin),
                  .key_end = index_view(e, end),
                  .output = dense_view(output.get(), shape_.dtype, size, 3),
                  .lse = dense_view(lse.get(), DType::kF32, size, 2),
                  .alibi_slopes = head_view(slopes, modifiers_.alibi_slopes),
                  .sinks = head_view(sinks, modifiers_.sinks),
                  .workspace = workspace.get()},
                 plan, shape_));
    check(cudaDeviceSynchronize());
    StepResult result{std::string(variant_name(plan)),
                      plan.tensor_cores != 0,
                      {},
                      download<float>(lse, lse_count),
                      download<uint8_t>(output, out)};
    for (size_t i = 0; i < out; i += dtype_bytes(shape_.dtype)) {
      result.output.push_back(decode(shape_.dtype, &result.output_bytes[i]));
    }
    return result;
  }

  static TensorView index_view(const DeviceMemory& memory, const std::vector<int32_t>& host) {
    return dense_view(memory.get(), DType::kI32, {static_cast<int64_t>(host.size())}, 1);
  }

  static TensorView head_view(const DeviceMemory& memory, const std::vector<float>& host) {
    if (host.empty()) return {};
    return dense_view(memory.get(), DType::kF32, {static_cast<int64_t>(host.size())}, 1);
  }

  AttentionShape shape_;
  HeadModifiers modifiers_;
  KvPool pool_;
};

/// Attention of one query row from its definition.
struct ExpectedRow {
  std::vector<double> output, magnitude;  // sum p v, sum p |v|
  double lse = -std::numeric_limits<double>::infinity();
};

inline int64_t anchor_of(const AttentionShape& s, const StepRow& row, int64_t query) {
  return s.causal == Causal::kTopLeft ? query : int64_t{row.request->slots} - row.queries + query;
}

inline bool is_visible(const AttentionShape& s, const StepRow& row, int64_t query, int64_t slot) {
  const Request& r = *row.request;
  if (slot < r.pad_left || slot >= r.slots - r.pad_right) return false;
  const int64_t anchor = anchor_of(s, row, query);
  if (s.causal != Causal::kNone && slot > anchor) return false;
  if (s.window_left >= 0 && anchor - slot > s.window_left) return false;
  return s.window_right < 0 || slot - anchor <= s.window_right;
}

/// Logits of a query for each slot, -inf where it does not see.
inline std::vector<double> expected_logits(const AttentionShape& s, const HeadModifiers& modifiers,
                                           const StepRow& row, int64_t query, int64_t head) {
  const Request& r = *row.request;
  const int64_t kv_head = head / (s.query_heads / s.kv_heads);
  const int64_t query_slot = int64_t{r.slots} - row.queries + query;
  std::vector<double> logits(r.slots, -std::numeric_limits<double>::infinity());
  for (int64_t slot = 0; slot < r.slots; ++slot) {
    if (!is_visible(s, row, query, slot)) continue;
    double dot = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      dot += double{element(r, Role::kQuery, query_slot, head, d)} *
             element(r, Role::kKey, slot, kv_head, d);
    }
    logits[slot] = dot * s.scale;
    if (s.softcap > 0) logits[slot] = s.softcap * std::tanh(logits[slot] / s.softcap);
    if (!modifiers.alibi_slopes.empty()) {
      const auto distance = static_cast<double>(std::abs(anchor_of(s, row, query) - slot));
      logits[slot] -= modifiers.alibi_slopes[head] * distance;
    }
  }
  return logits;
}

inline ExpectedRow expected_row(const AttentionShape& s, const HeadModifiers& modifiers,
                                const StepRow& row, int64_t query, int64_t head) {
  const Request& r = *row.request;
  const int64_t kv_head = head / (s.query_heads / s.kv_heads);
  const std::vector<double> logits = expected_logits(s, modifiers, row, query, head);
  ExpectedRow want{std::vector<double>(s.head_dim), std::vector<double>(s.head_dim)};
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double logit : logits) top = std::max(top, logit);
  if (std::isinf(top)) return want;
  for (double logit : logits) sum += std::exp(logit - top);
  if (!modifiers.sinks.empty()) sum += std::exp(modifiers.sinks[head] - top);
  for (int64_t slot = 0; slot < r.slots; ++slot) {
    const double p = std::exp(logits[slot] - top) / sum;
    if (p == 0) continue;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      const double v = element(r, Role::kValue, slot, kv_head, d);
      want.output[d] += p * v;
      want.magnitude[d] += p * std::abs(v);
    }
  }
  want.lse = top + std::log(sum);
  return want;
}

}  // namespace kvattn::testing
