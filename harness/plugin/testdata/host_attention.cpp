#include "harness/plugin/testdata/host_attention.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "harness/core/formats.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv::testdata {
namespace {

constexpr int kToDevice = 1, kToHost = 2;

template <class Function>
Function runtime_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

kv_status say(kv_error* why, kv_status status, const char* text) {
  std::snprintf(why->text, sizeof why->text, "%s", text);
  return status;
}

bool known(DLDataType t) {
  return (t.code == kDLFloat && (t.bits == 16 || t.bits == 32)) ||
         (t.code == kDLBfloat && t.bits == 16);
}
DType dtype_of(DLDataType t) {
  if (t.code == kDLBfloat) return DType::kBf16;
  return t.bits == 32 ? DType::kF32 : DType::kF16;
}

/// A host copy of a tensor's rows, fetched when they are asked for.
template <class Number>
std::vector<Number> fetch(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  std::vector<Number> host(static_cast<size_t>(count));
  copy_bytes(host.data(), tensor.data, host.size() * sizeof(Number), kToHost);
  return host;
}

char* address(const DLTensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data) + element * (tensor.dtype.bits / 8);
}

std::vector<double> fetch_row(const DLTensor& tensor, int64_t element, int64_t dims) {
  const DType type = dtype_of(tensor.dtype);
  const uint32_t bytes = dtype_bytes(type);
  std::vector<char> raw(static_cast<size_t>(dims) * bytes);
  copy_bytes(raw.data(), address(tensor, element), raw.size(), kToHost);
  std::vector<double> row(static_cast<size_t>(dims));
  for (size_t i = 0; i < row.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &raw[i * bytes], bytes);
    row[i] = decode(type, bits);
  }
  return row;
}

void store_row(const DLTensor& tensor, int64_t element, const std::vector<double>& row) {
  const DType type = dtype_of(tensor.dtype);
  const uint32_t bytes = dtype_bytes(type);
  std::vector<char> raw(row.size() * bytes);
  for (size_t i = 0; i < row.size(); ++i) {
    const uint32_t bits = encode(type, row[i]);
    std::memcpy(&raw[i * bytes], &bits, bytes);
  }
  copy_bytes(address(tensor, element), raw.data(), raw.size(), kToDevice);
}

/// Of a tensor [tokens, heads, ...], which may be a view.
int64_t row_element(const DLTensor& tensor, int64_t token, int64_t head) {
  return token * tensor.strides[0] + head * tensor.strides[1];
}

int64_t cache_element(const DLTensor& cache, const int32_t* table_row, int64_t slot, int64_t head) {
  const int64_t page_slots = cache.shape[1];
  return table_row[slot / page_slots] * cache.strides[0] + slot % page_slots * cache.strides[1] +
         head * cache.strides[2];
}

/// Where one query row stands.
struct QueryRow {
  int64_t anchor = 0;  // last key that a bottom-right causal mask leaves
  int64_t index = 0;   // in the request
  int64_t key_begin = 0, key_end = 0;
};

bool visible(const kv_attention_shape& s, const QueryRow& row, int64_t key) {
  if (key < row.key_begin || key >= row.key_end) return false;
  const int64_t anchor = s.causal == KV_CAUSAL_TOP_LEFT ? row.index : row.anchor;
  if (s.causal != KV_CAUSAL_NONE && key > anchor) return false;
  if (s.window_left >= 0 && key < anchor - s.window_left) return false;
  return s.window_right < 0 || key <= anchor + s.window_right;
}

class Attention {
 public:
  explicit Attention(const kv_attend_args& args)
      : args_(args),
        table_(fetch<int32_t>(args.cache.block_table)),
        offsets_(fetch<int32_t>(args.query_offsets)),
        kv_lengths_(fetch<int32_t>(args.kv_lengths)),
        key_begin_(fetch<int32_t>(args.key_begin)),
        key_end_(fetch<int32_t>(args.key_end)) {}

  void run() {
    for (size_t b = 0; b < kv_lengths_.size(); ++b) {
      const int64_t queries = offsets_[b + 1] - offsets_[b];
      for (int64_t i = 0; i < queries; ++i) {
        const QueryRow row{.anchor = kv_lengths_[b] - queries + i,
                           .index = i,
                           .key_begin = key_begin_[b],
                           .key_end = key_end_[b]};
        for (int64_t h = 0; h < args_.shape->query_heads; ++h)
          attend_row(row, {.token = offsets_[b] + i, .batch = static_cast<int64_t>(b), .head = h});
      }
    }
  }

 private:
  struct Place {
    int64_t token, batch, head;
  };

  void attend_row(const QueryRow& row, const Place& at) {
    const kv_attention_shape& s = *args_.shape;
    const int64_t dims_k = s.head_dim_k, dims_v = s.head_dim_v;
    const int64_t kv_head = at.head / (s.query_heads / s.kv_heads);
    const int32_t* table_row = &table_[at.batch * args_.cache.block_table.shape[1]];
    const auto q = fetch_row(args_.query, row_element(args_.query, at.token, at.head), dims_k);
    std::vector<double> logits;
    std::vector<int64_t> keys;
    for (int64_t key = row.key_begin; key < row.key_end; ++key) {
      if (!visible(s, row, key)) continue;
      const auto k = fetch_row(args_.cache.key,
                               cache_element(args_.cache.key, table_row, key, kv_head), dims_k);
      double dot = 0;
      for (int64_t d = 0; d < dims_k; ++d) dot += q[d] * k[d];
      dot *= static_cast<double>(s.scale);
      if (s.softcap > 0) dot = s.softcap * std::tanh(dot / s.softcap);
      logits.push_back(dot);
      keys.push_back(key);
    }
    std::vector<double> output(static_cast<size_t>(dims_v), 0.0);
    double lse = -std::numeric_limits<double>::infinity();
    if (!keys.empty()) {
      const double most = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (size_t j = 0; j < keys.size(); ++j) {
        const double p = std::exp(logits[j] - most);
        const auto v =
            fetch_row(args_.cache.value,
                      cache_element(args_.cache.value, table_row, keys[j], kv_head), dims_v);
        sum += p;
        for (int64_t d = 0; d < dims_v; ++d) output[d] += p * v[d];
      }
      for (double& o : output) o /= sum;
      lse = most + std::log(sum);
    }
    store_row(args_.output, row_element(args_.output, at.token, at.head), output);
    store_row(args_.lse, row_element(args_.lse, at.token, at.head), {lse});
  }

  const kv_attend_args& args_;
  std::vector<int32_t> table_, offsets_, kv_lengths_, key_begin_, key_end_;
};

void wait_for(void* stream) {
  static const auto synchronize = runtime_function<int (*)(void*)>("cudaStreamSynchronize");
  synchronize(stream);
}

}  // namespace

int copy_bytes(void* to, const void* from, size_t bytes, int kind) {
  static const auto copy = runtime_function<int (*)(void*, const void*, size_t, int)>("cudaMemcpy");
  return bytes == 0 ? 0 : copy(to, from, bytes, kind);
}

int allocate_bytes(void** memory, size_t bytes) {
  return runtime_function<int (*)(void**, size_t)>("cudaMalloc")(memory, bytes);
}

int free_bytes(void* memory) { return runtime_function<int (*)(void*)>("cudaFree")(memory); }

int undefine_bytes(void* memory, size_t bytes) {
  const auto* control = runtime_function<kv_simt_control_fn>("kv_simt_control")(1);
  return control->set_undefined(reinterpret_cast<uint64_t>(memory), bytes);
}

kv_status host_supports(const kv_attention_shape* s, kv_error* why) {
  const bool plain = s->mask_encoding == KV_MASK_NONE && !s->alibi && !s->sinks && !s->tree &&
                     s->rope == KV_ROPE_NONE && s->kv_scale == KV_SCALE_NONE && !s->value_in_key;
  const bool types = known(s->query_dtype) && known(s->kv_dtype) && known(s->output_dtype);
  if (plain && types) return KV_OK;
  return say(why, KV_UNSUPPORTED, "the host plugin does plain attention in f32, f16 and bf16");
}

kv_status host_plan(const kv_attention_shape*, const kv_batch* batch, kv_plan* out, kv_error* why) {
  const bool other = batch->variant != nullptr && std::strcmp(batch->variant, "host") != 0;
  if (other || batch->split_slots != 0)
    return say(why, KV_UNSUPPORTED, "the host plugin has one variant and no splits");
  out->workspace_bytes = 0;
  std::snprintf(out->variant, sizeof out->variant, "host");
  out->profile.splits = 1;
  out->profile.probability_dtype = {kDLFloat, 32, 1};
  return KV_OK;
}

kv_status host_append(const kv_append_args* args, kv_error*) {
  wait_for(args->stream);
  const auto table = fetch<int32_t>(args->cache.block_table);
  const auto offsets = fetch<int32_t>(args->token_offsets);
  const auto first = fetch<int32_t>(args->first_slots);
  const int64_t heads = args->shape->kv_heads;
  for (size_t b = 0; b < first.size(); ++b) {
    const int32_t* table_row = &table[b * static_cast<size_t>(args->cache.block_table.shape[1])];
    for (int64_t t = offsets[b]; t < offsets[b + 1]; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t slot = first[b] + (t - offsets[b]);
        const auto put = [&](const DLTensor& cache, const DLTensor& rows, int64_t dims) {
          store_row(cache, cache_element(cache, table_row, slot, h),
                    fetch_row(rows, row_element(rows, t, h), dims));
        };
        put(args->cache.key, args->key, args->shape->head_dim_k);
        put(args->cache.value, args->value, args->shape->head_dim_v);
      }
    }
  }
  return KV_OK;
}

kv_status host_attend(const kv_attend_args* args, kv_error*) {
  wait_for(args->stream);
  Attention(*args).run();
  return KV_OK;
}

}  // namespace kv::testdata
