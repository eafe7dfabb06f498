#include "kvattn/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "impl/dispatch/divide.h"
#include "impl/dispatch/validate.h"
#include "impl/dispatch/variants.h"
#include "impl/kernels/launch.h"
#include "impl/kernels/merge_states.h"

namespace kvattn {
namespace {

bool fits(const QueryRange& range, const BatchDescription& batch) {
  return std::ranges::all_of(batch.query_lengths,
                             [&](int32_t length) { return length == 0 || range.has(length); });
}

bool fits(Types types, DType dtype) {
  return types == Types::kAny || (types == Types::k32Bit) == (dtype == DType::kF32);
}

bool fits(Dims dims, const AttentionShape& shape) {
  return (dims == Dims::kLatent) == shape.is_latent();
}

StatusOr<uint32_t> forced_variant(const AttentionShape& shape, const BatchDescription& batch) {
  for (uint32_t i = 0; i < variants().size(); ++i) {
    const Variant& variant = variants()[i];
    if (batch.variant != variant.name) continue;
    if (!fits(variant.types, shape.dtype)) {
      return unsupported("variant \"", variant.name, "\" is not offered for ",
                         dtype_name(shape.dtype));
    }
    if (!fits(variant.dims, shape)) {
      return unsupported("variant \"", variant.name, "\" is not offered for K of ", shape.head_dim,
                         " and V of ", shape.dim_of_value(), " dimensions");
    }
    if (!fits(variant.accepts, batch)) {
      return unsupported("variant \"", variant.name, "\" accepts ", variant.accepts_text,
                         "; the batch has more");
    }
    return i;
  }
  return unsupported("variant \"", batch.variant, "\" does not exist");
}

bool fits(ChosenIn chosen_in, const AttentionShape& shape, const BatchDescription& batch) {
  if (chosen_in == ChosenIn::kThroughput) {
    return batch.multiprocessors > 0 && !batch.batch_invariant &&
           (shape.query_heads > shape.kv_heads || cache_dtype(shape) != shape.dtype);
  }
  return (chosen_in == ChosenIn::kInvariant) == batch.batch_invariant;
}

/// Some variant of the table is chosen for every batch.
uint32_t chosen_variant(const AttentionShape& shape, const BatchDescription& batch) {
  uint32_t i = 0;
  while (!fits(variants()[i].chosen_in, shape, batch) || !fits(variants()[i].types, shape.dtype) ||
         !fits(variants()[i].dims, shape) || !fits(variants()[i].chosen_for, batch)) {
    ++i;
  }
  return i;
}

/// Adds what a launch of the plan declares: the plan's profile is the weakest of its launches'.
void declare(Plan& plan, const KernelProfile& profile) {
  const bool is_first = plan.tile_slots == 0;
  plan.tile_slots = is_first ? profile.tile_slots : std::min(plan.tile_slots, profile.tile_slots);
  plan.ascending = is_first ? profile.is_ascending : plan.ascending && profile.is_ascending;
  plan.tensor_cores |= profile.uses_tensor_cores;
  plan.splits = std::max(plan.splits, profile.splits * plan.splits_max);
}

CodeFormat code_format(const AttentionShape& shape) {
  switch (cache_dtype(shape)) {
    case DType::kE4M3:
      return CodeFormat::kE4M3;
    case DType::kE5M2:
      return CodeFormat::kE5M2;
    case DType::kI8:
      return CodeFormat::kI8;
    default:
      return CodeFormat::kNone;
  }
}

PagedParams paged_params(const CacheView& cache, const AttentionShape& shape) {
  using enum ScaleGranularity;
  const bool by_token = shape.scales == kToken;
  return {.key = cache.key.data,
          .value = cache.value.data,
          .block_table = static_cast<const int32_t*>(cache.block_table.data),
          .key_page_stride = cache.key.strides[0],
          .key_slot_stride = cache.key.strides[1],
          .key_head_stride = cache.key.strides[2],
          .value_page_stride = cache.value.strides[0],
          .value_slot_stride = cache.value.strides[1],
          .value_head_stride = cache.value.strides[2],
          .block_table_stride = cache.block_table.strides[0],
          .page_shift = std::countr_zero(static_cast<uint64_t>(shape.page_slots)),
          .format = code_format(shape),
          .key_scale = static_cast<const float*>(cache.key_scale.data),
          .value_scale = static_cast<const float*>(cache.value_scale.data),
          .scale_page_stride = by_token ? shape.page_slots : shape.scales == kPage,
          .scale_slot_stride = by_token,
          .scale_head_stride = shape.scales == kHead};
}

RopeParams rope_params(const TensorView& positions, const Rope& rope) {
  if (rope.pairing == Rope::Pairing::kNone) return {};
  return {.positions = static_cast<const int64_t*>(positions.data),
          .theta = rope.theta,
          .dims = static_cast<int32_t>(rope.dims),
          .is_interleaved = rope.pairing == Rope::Pairing::kInterleaved};
}

const int32_t* indices(const TensorView& t) { return static_cast<const int32_t*>(t.data); }

/// Wider than any request, and far from overflow.
constexpr int64_t kWindowMax = int64_t{1} << 32;
constexpr uint64_t kWorkspaceAlignment = 256;

/// Partial results of divided queries in the workspace.
int64_t partial_count(const Plan& plan, const AttentionShape& shape) {
  return plan.splits_max == 1 ? 0 : plan.partial_units * shape.query_heads * plan.splits_max;
}

MaskParams mask_params(const TensorView& mask, MaskEncoding encoding) {
  if (encoding == MaskEncoding::kNone) return {};
  const auto stride = [&](int i) { return mask.shape[i] == 1 ? 0 : mask.strides[i]; };
  MaskParams params{.data = mask.data,
                    .request_stride = stride(0),
                    .head_stride = stride(1),
                    .query_stride = stride(2),
                    .format = MaskParams::kF32};
  if (encoding == MaskEncoding::kPackedBits) params.format = MaskParams::kPackedBits;
  if (encoding == MaskEncoding::kBoolKeep) params.format = MaskParams::kBoolKeep;
  if (encoding == MaskEncoding::kBoolBlock) params.format = MaskParams::kBoolBlock;
  if (encoding == MaskEncoding::kAdditive && mask.dtype == DType::kF16) {
    params.format = MaskParams::kF16;
  }
  if (encoding == MaskEncoding::kAdditive && mask.dtype == DType::kBF16) {
    params.format = MaskParams::kBF16;
  }
  return params;
}

TreeParams tree_params(const AttendCall& call) {
  if (call.tree_mask.data == nullptr) return {};
  return {.words = static_cast<const uint32_t*>(call.tree_mask.data),
          .first_slots = indices(call.tree_first_slots),
          .token_stride = call.tree_mask.strides[0]};
}

AttendParams attend_params(const AttendCall& call, const Plan& plan, const AttentionShape& shape) {
  return {.cache = paged_params(call.cache, shape),
          .query = call.query.data,
          .output = call.output.data,
          .lse = static_cast<float*>(call.lse.data),
          .query_offsets = indices(call.query_offsets),
          .kv_lengths = indices(call.kv_lengths),
          .key_begin = indices(call.key_begin),
          .key_end = indices(call.key_end),
          .query_token_stride = call.query.strides[0],
          .query_head_stride = call.query.strides[1],
          .output_token_stride = call.output.strides[0],
          .output_head_stride = call.output.strides[1],
          .lse_token_stride = call.lse.strides[0],
          .lse_head_stride = call.lse.strides[1],
          .window_left = std::min(shape.window_left, kWindowMax),
          .window_right = std::min(shape.window_right, kWindowMax),
          .tokens = static_cast<int32_t>(call.query.shape[0]),
          .requests = static_cast<int32_t>(call.query_offsets.shape[0] - 1),
          .kv_heads = static_cast<int32_t>(shape.kv_heads),
          .group = static_cast<int32_t>(shape.query_heads / shape.kv_heads),
          .head_dim = static_cast<int32_t>(shape.head_dim),
          .value_dim = static_cast<int32_t>(shape.dim_of_value()),
          .query_length_min = 0,
          .query_length_max = 0,
          .causal = static_cast<int32_t>(shape.causal),
          .scale_log2 = static_cast<float>(shape.scale * M_LOG2E),
          .softcap_log2 = static_cast<float>(shape.softcap * M_LOG2E),
          .softcap_scale =
              shape.softcap == 0 ? 0 : static_cast<float>(double{shape.scale} / shape.softcap),
          .alibi_slopes = static_cast<const float*>(call.alibi_slopes.data),
          .sinks = static_cast<const float*>(call.sinks.data),
          .mask = mask_params(call.mask, shape.mask),
          .tree = tree_params(call),
          .split_slots = static_cast<int32_t>(plan.split_slots),
          .splits_max = static_cast<int32_t>(plan.splits_max),
          .is_divided = false,
          .partials_by_token = false,
          .partial_output = static_cast<float*>(call.workspace),
          .partial_state = static_cast<float*>(call.workspace) +
                           partial_count(plan, shape) * shape.dim_of_value()};
}

const AttendLaunchers& launchers(const AttentionShape& shape) {
  const bool is_codes = code_format(shape) != CodeFormat::kNone;
  switch (shape.dtype) {
    case DType::kF16:
      return is_codes ? kAttendCodesF16 : kAttendF16;
    case DType::kBF16:
      return is_codes ? kAttendCodesBF16 : kAttendBF16;
    default:
      return is_codes ? kAttendCodesF32 : kAttendF32;
  }
}

uint64_t partial_bytes(const Plan& plan, const AttentionShape& shape) {
  return partial_count(plan, shape) * (shape.dim_of_value() + 2) * sizeof(float);
}

/// Where the turned queries lie in the workspace, after the partial results.
uint64_t rotated_offset(const Plan& plan, const AttentionShape& shape) {
  const uint64_t bytes = partial_bytes(plan, shape);
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

uint64_t workspace_bytes(const Plan& plan, const AttentionShape& shape) {
  if (shape.rope.pairing == Rope::Pairing::kNone || plan.tokens == 0) {
    return partial_bytes(plan, shape);
  }
  const uint64_t row_bytes = shape.query_heads * shape.head_dim * dtype_bytes(shape.dtype);
  return rotated_offset(plan, shape) + plan.tokens * row_bytes;
}

/// A plan is plain data that its caller keeps: it may be of another shape than the call.
Status check_plan(const Plan& plan, const AttentionShape& shape) {
  if (plan.variant >= variants().size()) {
    return refused("plan: expected a variant below ", variants().size(), ", got ", plan.variant);
  }
  const Variant& variant = variants()[plan.variant];
  if (!fits(variant.types, shape.dtype) || !fits(variant.dims, shape)) {
    return refused("plan: variant \"", variant.name,
                   "\" is of another shape: it has no kernel for ", dtype_name(shape.dtype),
                   ", K of ", shape.head_dim, " and V of ", shape.dim_of_value(), " dimensions");
  }
  if (const uint64_t bytes = workspace_bytes(plan, shape); bytes > plan.workspace_bytes) {
    return refused("plan: was made for another shape: its workspace has ", plan.workspace_bytes,
                   " bytes, this one needs ", bytes);
  }
  return {};
}

/// Turns the queries, and lets the kernels read them from the workspace.
cudaError_t rotate_queries(const AttendCall& call, const Plan& plan, const AttentionShape& shape,
                           AttendParams& params) {
  const RotateParams rotate{
      .query = params.query,
      .rotated = static_cast<char*>(call.workspace) + rotated_offset(plan, shape),
      .query_token_stride = params.query_token_stride,
      .query_head_stride = params.query_head_stride,
      .tokens = params.tokens,
      .heads = static_cast<int32_t>(shape.query_heads),
      .head_dim = params.head_dim,
      .rope = rope_params(call.positions, shape.rope)};
  params.query = rotate.rotated;
  params.query_token_stride = shape.query_heads * shape.head_dim;
  params.query_head_stride = shape.head_dim;
  return launch_rotate(rotate, shape.dtype, call.stream);
}

Status from_cuda(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  const bool is_too_old = error == cudaErrorNoKernelImageForDevice;
  return failed(what, ": CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error),
                ")", is_too_old ? "; kvattn needs sm_80 or later" : "");
}

}  // namespace

StatusOr<Plan> make_plan(const AttentionShape& shape, const BatchDescription& batch) {
  if (Status s = check_batch(shape, batch); !s.ok()) return s;
  Plan plan{.variant = chosen_variant(shape, batch)};
  if (!batch.variant.empty()) {
    StatusOr<uint32_t> forced = forced_variant(shape, batch);
    if (!forced.ok()) return forced.status();
    plan.variant = *forced;
  }
  plan.requests = static_cast<int64_t>(batch.query_lengths.size());
  for (int32_t length : batch.query_lengths) plan.tokens += length;
  const Variant& variant = variants()[plan.variant];
  for (size_t i = 0; i < variant.launches.size(); ++i) {
    const LaunchRule& rule = variant.launches[i];
    const bool is_needed =
        rule.kernel != nullptr && std::ranges::any_of(batch.query_lengths, [&](int32_t length) {
          return rule.queries.has(length);
        });
    if (!is_needed) continue;
    plan.launches |= 1u << i;
    if (is_divided(rule.kernel)) divide(plan, batch, shape.kv_heads, rule.kernel);
    declare(plan, kernel_profile(rule.kernel, shape));
  }
  plan.workspace_bytes = workspace_bytes(plan, shape);
  return plan;
}

std::string_view variant_name(const Plan& plan) {
  return plan.variant < variants().size() ? variants()[plan.variant].name : "";
}

Status append(const AppendCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_append(call, shape));
  if (call.key.shape[0] == 0) return {};
  const AppendParams params{
      .cache = paged_params(call.cache, shape),
      .key = call.key.data,
      .value = call.value.data,
      .token_offsets = indices(call.token_offsets),
      .first_slots = indices(call.first_slots),
      .key_token_stride = call.key.strides[0],
      .key_head_stride = call.key.strides[1],
      .value_token_stride = call.value.strides[0],
      .value_head_stride = call.value.strides[1],
      .tokens = static_cast<int32_t>(call.key.shape[0]),
      .requests = static_cast<int32_t>(call.first_slots.shape[0]),
      .kv_heads = static_cast<int32_t>(shape.kv_heads),
      .head_dim = static_cast<int32_t>(shape.head_dim),
      .value_dim = static_cast<int32_t>(shape.value_in_key ? 0 : shape.dim_of_value()),
      .rope = rope_params(call.positions, shape.rope)};
  const bool is_moved =
      params.cache.format == CodeFormat::kNone && params.rope.positions == nullptr;
  const auto launch = is_moved ? launch_append : launch_append_convert;
  return from_cuda("append", launch(params, shape.dtype, call.stream));
}

Status merge(const MergeCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_merge(call, shape));
  if (call.output.shape[0] == 0) return {};
  const MergeParams params{.outputs = call.outputs.data,
                           .lses = static_cast<const float*>(call.lses.data),
                           .output = call.output.data,
                           .lse = static_cast<float*>(call.lse.data),
                           .state_stride = call.outputs.strides[0],
                           .token_stride = call.outputs.strides[1],
                           .head_stride = call.outputs.strides[2],
                           .lses_state_stride = call.lses.strides[0],
                           .lses_token_stride = call.lses.strides[1],
                           .lses_head_stride = call.lses.strides[2],
                           .output_token_stride = call.output.strides[0],
                           .output_head_stride = call.output.strides[1],
                           .lse_token_stride = call.lse.strides[0],
                           .lse_head_stride = call.lse.strides[1],
                           .states = static_cast<int32_t>(call.outputs.shape[0]),
                           .tokens = static_cast<int32_t>(call.output.shape[0]),
                           .query_heads = static_cast<int32_t>(shape.query_heads),
                           .value_dim = static_cast<int32_t>(shape.dim_of_value())};
  return from_cuda("merge", launch_merge_states(params, shape.dtype, call.stream));
}

Status attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_attend(call, plan, shape));
  KVATTN_RETURN_IF_ERROR(check_plan(plan, shape));
  if (plan.tokens == 0) return {};
  AttendParams params = attend_params(call, plan, shape);
  if (shape.rope.pairing != Rope::Pairing::kNone) {
    KVATTN_RETURN_IF_ERROR(from_cuda("rotate", rotate_queries(call, plan, shape, params)));
  }
  const Variant& variant = variants()[plan.variant];
  for (size_t i = 0; i < variant.launches.size(); ++i) {
    if ((plan.launches >> i & 1) == 0) continue;
    const LaunchRule& rule = variant.launches[i];
    params.query_length_min = rule.queries.min;
    params.query_length_max = rule.queries.max;
    params.is_divided = is_divided(rule.kernel);
    params.partials_by_token = divides_tokens(rule.kernel);
    const auto launch = rule.kernel == nullptr ? nullptr : launchers(shape).*rule.kernel;
    if (launch == nullptr) {
      return refused("plan: was made for another dtype than ", dtype_name(shape.dtype));
    }
    KVATTN_RETURN_IF_ERROR(from_cuda(variant.name, launch(params, call.stream)));
  }
  return {};
}

}  // namespace kvattn
