// FlashInfer's paged decode and paged prefill (fp16, head dimension 128) as a kernel-level plugin.
// The adapter describes the batch as FlashInfer's own bindings do: page tables compressed on the
// host, then its plan, then its kernels. It computes nothing itself.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "ci/peers/flashinfer/batch.h"
#include "harness/plugin/kverify_plugin.h"

namespace {

using namespace peer;

constexpr uint64_t kAlignBytes = 256;
constexpr int64_t kVectorElements = 8;  // FlashInfer loads 16 bytes at once
constexpr int64_t kWindowMax = 1 << 30;
enum Word { kIsDecode, kFloatBytes, kIntBytes, kTableBytes };

kv_status answer(kv_status status, const std::string& text, kv_error* why) {
  if (why != nullptr) why->text[text.copy(why->text, sizeof why->text - 1)] = '\0';
  return status;
}

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

bool is_half(DLDataType type) {
  return type.code == kDLFloat && type.bits == 16 && type.lanes == 1;
}

Heads heads_of(const kv_attention_shape& s) {
  return {.query = s.query_heads, .kv = s.kv_heads, .page_slots = s.page_slots};
}

kv_status supports(const kv_attention_shape* s, kv_error* why) {
  const std::pair<bool, const char*> missing[] = {
      {!is_half(s->query_dtype) || !is_half(s->kv_dtype) || !is_half(s->output_dtype),
       "a dtype other than fp16 is not compiled"},
      {s->head_dim_k != kHeadDim || s->head_dim_v != kHeadDim,
       "a head dimension other than 128 is not compiled"},
      {s->softcap != 0 || s->alibi != 0, "the soft cap and ALiBi are not compiled"},
      {s->causal == KV_CAUSAL_TOP_LEFT, "FlashInfer's causal mask is the bottom-right one"},
      {s->window_right >= 0, "FlashInfer has no right window"},
      {s->mask_encoding != KV_MASK_NONE || s->tree != 0, "custom masks are not compiled"},
      {s->padding != 0, "FlashInfer's page tables have no padding"},
      {s->sinks != 0, "this version of FlashInfer has no sinks"},
      {s->rope != KV_ROPE_NONE, "RoPE inside the kernel is not compiled"},
      {s->kv_scale != KV_SCALE_NONE, "a quantised cache is not compiled"},
  };
  for (const auto& [is_asked, reason] : missing) {
    if (is_asked) return answer(KV_UNSUPPORTED, reason, why);
  }
  return KV_OK;
}

int32_t pages_of(int32_t slots, uint32_t page_slots) {
  return int32_t((int64_t{slots} + page_slots - 1) / page_slots);
}

kv_status plan(const kv_attention_shape* shape, const kv_batch* batch, kv_plan* out,
               kv_error* why) {
  if (const kv_status status = supports(shape, why); status != KV_OK) return status;
  if (batch->split_slots != 0)
    return answer(KV_UNSUPPORTED, "FlashInfer chooses its splits itself", why);
  HostBatch host{.heads = heads_of(*shape), .query_offsets = {0}, .page_offsets = {0}};
  bool is_decode = true;
  for (uint32_t b = 0; b < batch->rows; ++b) {
    is_decode &= batch->query_lengths[b] == 1;
    host.query_offsets.push_back(host.query_offsets.back() + batch->query_lengths[b]);
    host.page_offsets.push_back(host.page_offsets.back() +
                                pages_of(batch->kv_lengths[b], shape->page_slots));
  }
  const uint32_t group = shape->query_heads / shape->kv_heads;
  is_decode &= group == 1 || group == 4;
  const std::string wanted = batch->variant == nullptr ? "" : batch->variant;
  if (wanted == "decode" && !is_decode)
    return answer(KV_UNSUPPORTED, "decode takes one query row for each request, groups of 1 or 4",
                  why);
  if (wanted == "prefill") is_decode = false;
  try {
    const Sizes sizes = is_decode ? decode_sizes(host) : prefill_sizes(host);
    const uint64_t table_bytes =
        aligned((uint64_t{batch->rows} * 2 + 1 + uint64_t(host.page_offsets.back())) * 4);
    out->plugin_words[kIsDecode] = is_decode;
    out->plugin_words[kFloatBytes] = aligned(sizes.float_bytes);
    out->plugin_words[kIntBytes] = aligned(sizes.int_bytes);
    out->plugin_words[kTableBytes] = table_bytes;
    out->workspace_bytes = table_bytes + aligned(sizes.float_bytes) + aligned(sizes.int_bytes);
    const std::string name = is_decode ? "decode" : "prefill";
    out->variant[name.copy(out->variant, sizeof out->variant - 1)] = '\0';
    const DLDataType half = {kDLFloat, 16, 1}, single = {kDLFloat, 32, 1};
    out->profile = {.struct_bytes = sizeof out->profile,
                    .accumulate = is_decode ? KV_ACCUMULATE_FMA : KV_ACCUMULATE_MMA,
                    .probability_dtype = is_decode ? single : half,
                    .row_sum_of_rounded = is_decode ? 0u : 1u,
                    .splits = sizes.splits,
                    .maximum_is_exact = 1};
  } catch (const std::exception& error) {
    return answer(KV_FAILED, error.what(), why);
  }
  return KV_OK;
}

/// Why FlashInfer cannot take this cache; "" when it can.
std::string refusal_of(const kv_paged_cache& cache) {
  for (int i = 0; i < 3; ++i) {
    if (cache.key.strides[i] != cache.value.strides[i])
      return "FlashInfer takes one set of strides for K and V";
    if (cache.key.strides[i] % kVectorElements != 0 || cache.key.strides[i] > UINT32_MAX)
      return "FlashInfer's strides are 32-bit multiples of 8 elements";
  }
  for (const DLTensor* tensor : {&cache.key, &cache.value}) {
    if (reinterpret_cast<uintptr_t>(tensor->data) % 16 != 0)
      return "FlashInfer's caches are aligned to 16 bytes";
  }
  return "";
}

Cache cache_of(const kv_paged_cache& cache) {
  Cache out{.key = static_cast<half*>(cache.key.data),
            .value = static_cast<half*>(cache.value.data)};
  std::copy_n(cache.key.strides, 3, out.strides);
  return out;
}

/// A device array on the host, once the stream has got there.
class Fetched {
 public:
  Fetched(const DLTensor& tensor, cudaStream_t stream) : stride_(tensor.strides[0]) {
    int64_t count = 1;
    for (int i = 0; i < tensor.ndim && count > 0; ++i) {
      count = tensor.shape[i] == 0 ? 0 : count + (tensor.shape[i] - 1) * tensor.strides[i];
    }
    values_.resize(size_t(count));
    error = cudaMemcpyAsync(values_.data(), tensor.data, values_.size() * 4, cudaMemcpyDeviceToHost,
                            stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  }
  int32_t operator()(int64_t row, int64_t column = 0) const {
    return values_[size_t(row * stride_ + column)];
  }
  cudaError_t error = cudaSuccess;

 private:
  int64_t stride_ = 1;
  std::vector<int32_t> values_;
};

/// FlashInfer's page table, in one block: offsets, indices, slots in the last page.
struct PageTable {
  std::vector<int32_t> offsets = {0}, indices, last_slots;

  void add(const Fetched& block_table, int64_t row, int32_t slots, uint32_t page_slots) {
    const int32_t pages = pages_of(slots, page_slots);
    for (int32_t p = 0; p < pages; ++p) indices.push_back(block_table(row, p));
    offsets.push_back(int32_t(indices.size()));
    last_slots.push_back(pages == 0 ? 0 : slots - (pages - 1) * int32_t(page_slots));
  }
  std::vector<int32_t> joined() const {
    std::vector<int32_t> all = offsets;
    all.insert(all.end(), indices.begin(), indices.end());
    all.insert(all.end(), last_slots.begin(), last_slots.end());
    return all;
  }
  void place(int32_t* device, Cache* cache) const {
    cache->page_offsets = device;
    cache->page_indices = device + offsets.size();
    cache->last_page_slots = cache->page_indices + indices.size();
  }
};

bool is_dense(const DLTensor& tensor) {
  int64_t stride = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

kv_status ended(cudaError_t error, kv_error* why) {
  return error == cudaSuccess ? KV_OK : answer(KV_FAILED, cudaGetErrorString(error), why);
}

kv_status run_attend(const kv_attend_args& args, kv_error* why) {
  const auto stream = static_cast<cudaStream_t>(args.stream);
  const uint64_t* const words = args.plan->plugin_words;
  const Fetched offsets(args.query_offsets, stream), lengths(args.kv_lengths, stream),
      block_table(args.cache.block_table, stream);
  for (const Fetched* f : {&offsets, &lengths, &block_table}) {
    if (f->error != cudaSuccess) return ended(f->error, why);
  }
  const int64_t rows = args.kv_lengths.shape[0];
  HostBatch host{.heads = heads_of(*args.shape), .query_offsets = {}, .page_offsets = {}};
  PageTable table;
  for (int64_t b = 0; b <= rows; ++b) host.query_offsets.push_back(offsets(b));
  for (int64_t b = 0; b < rows; ++b) {
    table.add(block_table, b, lengths(b), args.shape->page_slots);
  }
  host.page_offsets = table.offsets;
  const int64_t window = args.shape->window_left;
  auto* const workspace = static_cast<char*>(args.workspace);
  Attend call{.cache = cache_of(args.cache),
              .query = static_cast<half*>(args.query.data),
              .output = static_cast<half*>(args.output.data),
              .lse = static_cast<float*>(args.lse.data),
              .query_offsets = static_cast<int32_t*>(args.query_offsets.data),
              .query_token_stride = args.query.strides[0],
              .query_head_stride = args.query.strides[1],
              .scale = args.shape->scale,
              .window_left = window < 0 || window > kWindowMax ? -1 : int32_t(window),
              .causal = args.shape->causal == KV_CAUSAL_BOTTOM_RIGHT,
              .float_workspace = workspace + words[kTableBytes],
              .int_workspace = workspace + words[kTableBytes] + words[kFloatBytes],
              .sizes = {.float_bytes = words[kFloatBytes], .int_bytes = words[kIntBytes]},
              .stream = stream};
  table.place(reinterpret_cast<int32_t*>(workspace), &call.cache);
  const std::vector<int32_t> all = table.joined();
  const cudaError_t error =
      cudaMemcpyAsync(workspace, all.data(), all.size() * 4, cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return ended(error, why);
  return ended(words[kIsDecode] ? decode(host, call) : prefill(host, call), why);
}

kv_status attend(const kv_attend_args* args, kv_error* why) {
  if (const kv_status status = supports(args->shape, why); status != KV_OK) return status;
  std::string no = refusal_of(args->cache);
  if (no.empty() && !(is_dense(args->output) && is_dense(args->lse)))
    no = "FlashInfer writes dense outputs";
  for (int i = 0; i < 2; ++i) {
    if (no.empty() && args->query.strides[i] % kVectorElements != 0)
      no = "FlashInfer's queries have strides of multiples of 8 elements";
  }
  if (!no.empty()) return answer(KV_UNSUPPORTED, no, why);
  try {
    return run_attend(*args, why);
  } catch (const std::exception& error) {
    return answer(KV_FAILED, error.what(), why);
  }
}

kv_status append_tokens(const kv_append_args* args, kv_error* why) {
  if (const kv_status status = supports(args->shape, why); status != KV_OK) return status;
  if (const std::string no = refusal_of(args->cache); !no.empty())
    return answer(KV_UNSUPPORTED, no, why);
  const auto stream = static_cast<cudaStream_t>(args->stream);
  const Fetched offsets(args->token_offsets, stream), first_slots(args->first_slots, stream),
      block_table(args->cache.block_table, stream);
  for (const Fetched* f : {&offsets, &first_slots, &block_table}) {
    if (f->error != cudaSuccess) return ended(f->error, why);
  }
  PageTable table;
  std::vector<int32_t> row_of_token, slot_of_token;
  const int64_t rows = args->first_slots.shape[0];
  for (int64_t b = 0; b < rows; ++b) {
    const int32_t tokens = offsets(b + 1) - offsets(b);
    table.add(block_table, b, first_slots(b) + tokens, args->shape->page_slots);
    for (int32_t t = 0; t < tokens; ++t) {
      row_of_token.push_back(int32_t(b));
      slot_of_token.push_back(first_slots(b) + t);
    }
  }
  if (row_of_token.empty()) return KV_OK;
  std::vector<int32_t> all = table.joined();
  const size_t table_words = all.size(), tokens = row_of_token.size();
  all.insert(all.end(), row_of_token.begin(), row_of_token.end());
  all.insert(all.end(), slot_of_token.begin(), slot_of_token.end());
  int32_t* device = nullptr;
  cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&device), all.size() * 4);
  if (error != cudaSuccess) return ended(error, why);
  Append call{.cache = cache_of(args->cache),
              .heads = heads_of(*args->shape),
              .rows = uint32_t(rows),
              .tokens = uint32_t(tokens),
              .key = static_cast<half*>(args->key.data),
              .value = static_cast<half*>(args->value.data),
              .key_strides = {args->key.strides[0], args->key.strides[1]},
              .value_strides = {args->value.strides[0], args->value.strides[1]},
              .row_of_token = device + table_words,
              .slot_of_token = device + table_words + tokens,
              .stream = stream};
  table.place(device, &call.cache);
  error = cudaMemcpyAsync(device, all.data(), all.size() * 4, cudaMemcpyHostToDevice, stream);
  try {
    if (error == cudaSuccess) error = append(call);
  } catch (const std::exception& thrown) {
    cudaFree(device);
    return answer(KV_FAILED, thrown.what(), why);
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  const cudaError_t freed = cudaFree(device);
  return ended(error == cudaSuccess ? freed : error, why);
}

const char* const kVariants[] = {"decode", "prefill", nullptr};

const kv_kernel_level kKernelLevel = {.struct_bytes = sizeof(kv_kernel_level),
                                      .supports = supports,
                                      .plan = plan,
                                      .append = append_tokens,
                                      .attend = attend,
                                      .variants = kVariants};

const kv_plugin kPlugin = {.struct_bytes = sizeof(kv_plugin),
                           .abi = KV_PLUGIN_ABI,
                           .name = "flashinfer",
                           .version = KV_PEER_VERSION,
                           .conventions = {.struct_bytes = sizeof(kv_conventions),
                                           .lse_base = KV_LSE_BASE_2,
                                           .lse_layout = KV_LSE_TOKEN_MAJOR,
                                           .empty_row_lse = KV_EMPTY_LSE_MINUS_INF,
                                           .pad_rows = KV_PAD_ROWS_UNSPECIFIED,
                                           .promises = KV_PROMISE_DETERMINISTIC | KV_PROMISE_PAGE},
                           .kernel = &kKernelLevel,
                           .engine = nullptr};

}  // namespace

extern "C" const kv_plugin* kverify_plugin_v1(void) { return &kPlugin; }
