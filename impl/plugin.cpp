// The kernel-level plugin: kvattn as kverify sees it: as it is by default, in batch-invariant mode
// (KVATTN_BATCH_INVARIANT), which promises more, in throughput mode (KVATTN_THROUGHPUT), which
// promises less, and over baseline/ (KVATTN_BASELINE). Translates DLPack to TensorView and Status
// to kv_status; everything else is the library's.
#include <algorithm>
#include <cstring>

#include "harness/plugin/kverify_plugin.h"
#include "impl/plugin/dlpack.h"
#include "impl/plugin/engine_level.h"
#include "kvattn/attention.h"

namespace {

using namespace kvattn;

constexpr uint32_t kPromisesOfBoth = KV_PROMISE_DETERMINISTIC | KV_PROMISE_BATCH | KV_PROMISE_PAGE |
                                     KV_PROMISE_LAYOUT | KV_PROMISE_HEAD | KV_PROMISE_CHANNEL |
                                     KV_PROMISE_SCALE | KV_PROMISE_MASK | KV_PROMISE_GRAPH;
#ifdef KVATTN_BATCH_INVARIANT
constexpr bool kBatchInvariant = true;
constexpr const char* kName = "kvattn-invariant";
constexpr uint32_t kPromises = kPromisesOfBoth | KV_PROMISE_CHUNK;
#elif defined(KVATTN_THROUGHPUT)
constexpr bool kBatchInvariant = false;
constexpr const char* kName = "kvattn-throughput";
// A batch decides how the slots of its queries are divided.
constexpr uint32_t kPromises = kPromisesOfBoth & ~uint32_t{KV_PROMISE_BATCH | KV_PROMISE_HEAD};
#elif defined(KVATTN_BASELINE)
constexpr bool kBatchInvariant = false;
constexpr const char* kName = "kvattn-baseline";
// What its products do with a batch is cuBLAS's.
constexpr uint32_t kPromises = KV_PROMISE_DETERMINISTIC | KV_PROMISE_PAGE | KV_PROMISE_LAYOUT;
#else
constexpr bool kBatchInvariant = false;
constexpr const char* kName = "kvattn";
constexpr uint32_t kPromises = kPromisesOfBoth;
#endif

struct Named {
  const char* name;
  const DLTensor& tensor;
  TensorView& view;
};

Status to_view(const Named& named) {
  const DLTensor& t = named.tensor;
  StatusOr<DType> dtype = dtype_of(named.name, t.dtype);
  if (!dtype.ok()) return dtype.status();
  if (t.device.device_type != kDLCUDA) {
    return refused(named.name, ": expected device type ", int{kDLCUDA}, " (CUDA), got ",
                   int{t.device.device_type});
  }
  if (t.ndim < 1 || t.ndim > 4 || t.shape == nullptr || t.strides == nullptr) {
    return refused(named.name, ": expected 1 to 4 dimensions with shape and strides, got ", t.ndim);
  }
  named.view.data = t.data == nullptr ? nullptr : static_cast<char*>(t.data) + t.byte_offset;
  named.view.dtype = *dtype;
  named.view.rank = t.ndim;
  std::copy_n(t.shape, t.ndim, named.view.shape.begin());
  std::copy_n(t.strides, t.ndim, named.view.strides.begin());
  return {};
}

Status to_views(std::initializer_list<Named> tensors) {
  for (const Named& named : tensors) KVATTN_RETURN_IF_ERROR(to_view(named));
  return {};
}

/// What the ABI can ask for and kvattn does not offer.
Status check_offered(const kv_attention_shape& s) {
  const std::pair<bool, const char*> missing[] = {
      {(s.padding & KV_PAD_HOLES) != 0 && s.mask_encoding == KV_MASK_NONE,
       "padding inside a request without a mask"},
  };
  for (const auto& [asked, what] : missing) {
    if (asked) return unsupported("shape: kvattn does not offer ", what);
  }
  return {};
}

StatusOr<AttentionShape> to_shape(const kv_attention_shape* s) {
  if (s == nullptr || s->struct_bytes < sizeof *s) {
    return refused("shape: expected a struct of ", sizeof *s, " bytes or more");
  }
  if (Status status = check_offered(*s); !status.ok()) return status;
  StatusOr<DType> dtype = dtype_of("shape", s->query_dtype);
  if (!dtype.ok()) return dtype.status();
  StatusOr<DType> output = dtype_of("shape", s->output_dtype);
  if (!output.ok()) return output.status();
  if (*output != *dtype) {
    return unsupported("shape: expected Q and O in one dtype, got ", dtype_name(*dtype), " and ",
                       dtype_name(*output));
  }
  StatusOr<DType> cache = dtype_of("shape", s->kv_dtype);
  if (!cache.ok()) return cache.status();
  if (s->causal > KV_CAUSAL_BOTTOM_RIGHT || s->mask_encoding > KV_MASK_ADDITIVE ||
      s->kv_scale > KV_SCALE_PAGE || s->rope > KV_ROPE_INTERLEAVED) {
    return refused("shape: expected causal 0 to 2, mask encoding 0 to 4, scales 0 to 4 and RoPE 0 ",
                   "to 2, got ", s->causal, ", ", s->mask_encoding, ", ", s->kv_scale, " and ",
                   s->rope);
  }
  StatusOr<DType> mask_dtype = DType::kF32;
  if (s->mask_encoding == KV_MASK_ADDITIVE) mask_dtype = dtype_of("mask", s->mask_dtype);
  if (!mask_dtype.ok()) return mask_dtype.status();
  AttentionShape shape{.query_heads = s->query_heads,
                       .kv_heads = s->kv_heads,
                       .head_dim = s->head_dim_k,
                       .value_dim = s->head_dim_v,
                       .page_slots = s->page_slots,
                       .dtype = *dtype,
                       .scale = s->scale,
                       .causal = static_cast<Causal>(s->causal),
                       .window_left = s->window_left,
                       .window_right = s->window_right,
                       .softcap = s->softcap,
                       .mask = static_cast<MaskEncoding>(s->mask_encoding),
                       .mask_dtype = *mask_dtype,
                       .cache_dtype = *cache,
                       .scales = static_cast<ScaleGranularity>(s->kv_scale),
                       .rope = {.pairing = static_cast<Rope::Pairing>(s->rope),
                                .dims = s->rope_dims,
                                .theta = s->rope_theta},
                       .value_in_key = s->value_in_key != 0};
  if (Status status = check_shape(shape); !status.ok()) return status;
  return shape;
}

/// The scales that the shape asks for; a pointer without a shape, as the interface has it.
TensorView scale_view(const float* data, const AttentionShape& shape, int64_t pages) {
  float* const scales = const_cast<float*>(data);
  switch (shape.scales) {
    case ScaleGranularity::kNone:
      return {};
    case ScaleGranularity::kTensor:
      return dense_view(scales, DType::kF32, {1}, 1);
    case ScaleGranularity::kHead:
      return dense_view(scales, DType::kF32, {shape.kv_heads}, 1);
    case ScaleGranularity::kToken:
      return dense_view(scales, DType::kF32, {pages, shape.page_slots}, 2);
    default:
      return dense_view(scales, DType::kF32, {pages}, 1);
  }
}

Status cache_views(const kv_paged_cache& cache, const AttentionShape& shape, CacheView& view) {
  Status status = to_views({{"key cache", cache.key, view.key},
                            {"value cache", cache.value, view.value},
                            {"block table", cache.block_table, view.block_table}});
  view.key_scale = scale_view(cache.key_scale, shape, view.key.shape[0]);
  view.value_scale = scale_view(cache.value_scale, shape, view.key.shape[0]);
  return status;
}

/// An optional input of one fp32 for each query head.
Status head_view(const char* name, const float* data, bool is_used, int64_t heads,
                 TensorView& view) {
  if (!is_used) return {};
  if (data == nullptr) return refused(name, ": the shape says that it is given, got null");
  view = dense_view(const_cast<float*>(data), DType::kF32, {heads}, 1);
  return {};
}

/// A tensor that the plugin may have been given.
Status optional_view(const char* name, const DLTensor* tensor, TensorView& view) {
  return tensor == nullptr ? Status() : to_view({name, *tensor, view});
}

kv_status supports(const kv_attention_shape* shape, kv_error* why) {
  return answer(to_shape(shape).status(), why);
}

static_assert(sizeof(Plan) <= sizeof(kv_plan::plugin_words));

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};

kv_profile profile_of(const Plan& plan, const kv_attention_shape& shape) {
#ifdef KVATTN_BASELINE
  // The order of a product of cuBLAS is nobody's to declare.
  return {.struct_bytes = sizeof(kv_profile), .probability_dtype = shape.kv_dtype, .splits = 1};
#endif
  return {.struct_bytes = sizeof(kv_profile),
          .tile_slots = plan.tile_slots,
          .order = plan.ascending ? KV_ORDER_ASCENDING : KV_ORDER_ANY,
          .accumulate = plan.tensor_cores ? KV_ACCUMULATE_MMA : KV_ACCUMULATE_FMA,
          .probability_dtype = plan.tensor_cores ? shape.query_dtype : kFloat32,
          .row_sum_of_rounded = 0,
          .splits = plan.splits,
          .maximum_is_exact = plan.tensor_cores && plan.ascending && plan.splits == 1};
}

/// Of the current device; 0 outside throughput mode.
StatusOr<uint32_t> multiprocessors() {
#ifdef KVATTN_THROUGHPUT
  int device = 0, count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess)
    return failed("plan: the device does not say how many multiprocessors it has: ",
                  cudaGetErrorString(error));
  return static_cast<uint32_t>(count);
#else
  return uint32_t{0};
#endif
}

kv_status plan(const kv_attention_shape* shape, const kv_batch* batch, kv_plan* out,
               kv_error* why) {
  StatusOr<AttentionShape> s = to_shape(shape);
  if (!s.ok()) return answer(s.status(), why);
  if (batch == nullptr || out == nullptr || batch->struct_bytes < sizeof *batch ||
      out->struct_bytes < sizeof *out) {
    return answer(refused("plan: expected a kv_batch of ", sizeof *batch, " and a kv_plan of ",
                          sizeof *out, " bytes or more"),
                  why);
  }
  const StatusOr<uint32_t> processors = multiprocessors();
  if (!processors.ok()) return answer(processors.status(), why);
  const BatchDescription description{.query_lengths = {batch->query_lengths, batch->rows},
                                     .kv_lengths = {batch->kv_lengths, batch->rows},
                                     .variant = batch->variant == nullptr ? "" : batch->variant,
                                     .split_slots = batch->split_slots,
                                     .batch_invariant = kBatchInvariant,
                                     .multiprocessors = *processors};
  StatusOr<Plan> made = make_plan(*s, description);
  if (!made.ok()) return answer(made.status(), why);
  out->workspace_bytes = made->workspace_bytes;
  out->variant[variant_name(*made).copy(out->variant, sizeof out->variant - 1)] = '\0';
  out->profile = profile_of(*made, *shape);
  std::memcpy(out->plugin_words, &*made, sizeof *made);
  return KV_OK;
}

kv_status append_tokens(const kv_append_args* args, kv_error* why) {
  if (args == nullptr || args->struct_bytes < sizeof *args) {
    return answer(refused("append: expected arguments of ", sizeof *args, " bytes or more"), why);
  }
  StatusOr<AttentionShape> shape = to_shape(args->shape);
  if (!shape.ok()) return answer(shape.status(), why);
  AppendCall call;
  call.stream = static_cast<cudaStream_t>(args->stream);
  Status status = cache_views(args->cache, *shape, call.cache);
  if (status.ok() && args->shape->rope != KV_ROPE_NONE) {
    status = to_view({"positions", args->positions, call.positions});
  }
  if (status.ok()) {
    status = to_views({{"key", args->key, call.key},
                       {"value", args->value, call.value},
                       {"token_offsets", args->token_offsets, call.token_offsets},
                       {"first_slots", args->first_slots, call.first_slots}});
  }
  return answer(status.ok() ? append(call, *shape) : status, why);
}

kv_status attend_batch(const kv_attend_args* args, kv_error* why) {
  if (args == nullptr || args->struct_bytes < sizeof *args || args->plan == nullptr ||
      args->plan->struct_bytes < sizeof *args->plan) {
    return answer(refused("attend: expected arguments of ", sizeof *args, " and a plan of ",
                          sizeof *args->plan, " bytes or more"),
                  why);
  }
  StatusOr<AttentionShape> shape = to_shape(args->shape);
  if (!shape.ok()) return answer(shape.status(), why);
  Plan made;
  std::memcpy(&made, args->plan->plugin_words, sizeof made);
  AttendCall call;
  call.workspace = args->workspace;
  call.stream = static_cast<cudaStream_t>(args->stream);
  Status status = cache_views(args->cache, *shape, call.cache);
  if (status.ok()) {
    status = to_views({{"query", args->query, call.query},
                       {"query_offsets", args->query_offsets, call.query_offsets},
                       {"kv_lengths", args->kv_lengths, call.kv_lengths},
                       {"key_begin", args->key_begin, call.key_begin},
                       {"key_end", args->key_end, call.key_end},
                       {"output", args->output, call.output},
                       {"lse", args->lse, call.lse}});
  }
  const int64_t heads = shape->query_heads;
  if (status.ok()) {
    status = head_view("alibi_slopes", args->alibi_slopes, args->shape->alibi != 0, heads,
                       call.alibi_slopes);
  }
  if (status.ok()) {
    status = head_view("sinks", args->sinks, args->shape->sinks != 0, heads, call.sinks);
  }
  if (status.ok()) status = optional_view("mask", args->mask, call.mask);
  if (status.ok()) status = optional_view("positions", args->positions, call.positions);
  if (status.ok()) status = optional_view("tree_mask", args->tree_mask, call.tree_mask);
  if (status.ok()) {
    status = optional_view("tree_first_slots", args->tree_first_slots, call.tree_first_slots);
  }
  return answer(status.ok() ? attend(call, made, *shape) : status, why);
}

kv_status merge_states(const kv_merge_args* args, kv_error* why) {
  if (args == nullptr || args->struct_bytes < sizeof *args) {
    return answer(refused("merge: expected arguments of ", sizeof *args, " bytes or more"), why);
  }
  StatusOr<AttentionShape> shape = to_shape(args->shape);
  if (!shape.ok()) return answer(shape.status(), why);
  MergeCall call;
  call.stream = static_cast<cudaStream_t>(args->stream);
  const Status status = to_views({{"outputs", args->outputs, call.outputs},
                                  {"lses", args->lses, call.lses},
                                  {"output", args->output, call.output},
                                  {"lse", args->lse, call.lse}});
  return answer(status.ok() ? merge(call, *shape) : status, why);
}

const kv_kernel_level kKernelLevel = {
    .struct_bytes = sizeof(kv_kernel_level),
    .supports = supports,
    .plan = plan,
    .append = append_tokens,
    .attend = attend_batch,
    .variants = kBatchInvariant ? invariant_variant_names() : variant_names(),
    .merge = merge_states};

const kv_plugin kPlugin = {.struct_bytes = sizeof(kv_plugin),
                           .abi = KV_PLUGIN_ABI,
                           .name = kName,
                           .version = "0.1.0",
                           .conventions = {.struct_bytes = sizeof(kv_conventions),
                                           .lse_base = KV_LSE_NATURAL,
                                           .lse_layout = KV_LSE_TOKEN_MAJOR,
                                           .empty_row_lse = KV_EMPTY_LSE_MINUS_INF,
                                           .pad_rows = KV_PAD_ROWS_COMPUTED,
                                           .promises = kPromises},
                           .kernel = &kKernelLevel,
                           .engine = &engine_level()};

}  // namespace

extern "C" __attribute__((visibility("default"))) const kv_plugin* kverify_plugin_v1(void) {
  return &kPlugin;
}
