// kvattn/attention.h once more: gather, cuBLAS, softmax, cuBLAS, scatter.
#include "kvattn/attention.h"

#include <cublas_v2.h>

#include <algorithm>
#include <memory>

#include "impl/baseline/materialised.h"
#include "impl/dispatch/validate.h"

namespace kvattn {
namespace {

using baseline::Materialised;
using baseline::Strided;

constexpr int64_t kPlanesMax = 65535;                     // the grid's second dimension
constexpr int64_t kWorkspaceBytesMax = int64_t{1} << 30;  // it grows with queries x slots
constexpr int64_t kAlignment = 256;

const int32_t* indices(const TensorView& t) { return static_cast<const int32_t*>(t.data); }

Strided strided(const TensorView& t) {
  return {t.data, {t.strides[0], t.strides[1], t.strides[2]}};
}

Strided strided_mask(const TensorView& mask) {
  Strided s = strided(mask);
  for (int i = 0; i < 3; ++i) {
    if (mask.shape[i] == 1) s.stride[i] = 0;
  }
  return s;
}

/// Hands out the workspace piece by piece; counts when there is none.
class Workspace {
 public:
  explicit Workspace(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  void take(T*& to, int64_t bytes) {
    to = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

void place(Workspace& workspace, int64_t element, Materialised& m) {
  const int64_t rows = m.planes() * m.rows_max, slots = m.planes() * m.slots_max;
  constexpr int64_t kFloat = sizeof(float);
  workspace.take(m.keys, slots * m.dim_k * element);
  workspace.take(m.values, slots * m.dim_v * element);
  workspace.take(m.queries, rows * m.dim_k * element);
  workspace.take(m.weights, rows * m.slots_max * element);
  workspace.take(m.scores, rows * m.slots_max * kFloat);
  workspace.take(m.sums, rows * m.dim_v * kFloat);
  workspace.take(m.factors, rows * kFloat);
}

/// What shape and plan say; the rest is filled by fill().
Materialised sized(const AttentionShape& shape, const Plan& plan) {
  Materialised m = {};
  m.requests = static_cast<int32_t>(plan.requests);
  m.kv_heads = static_cast<int32_t>(shape.kv_heads);
  m.group = static_cast<int32_t>(shape.query_heads / shape.kv_heads);
  m.page_slots = static_cast<int32_t>(shape.page_slots);
  m.dim_k = static_cast<int32_t>(shape.head_dim);
  m.dim_v = static_cast<int32_t>(shape.dim_of_value());
  m.rows_max = plan.longest_query * m.group;
  m.slots_max = std::max<int64_t>(plan.longest_kv, 1);
  return m;
}

void fill(const AttendCall& call, const AttentionShape& shape, Materialised& m) {
  m.key = strided(call.cache.key);
  m.value = strided(call.cache.value);
  m.query = strided(call.query);
  m.output = strided(call.output);
  m.lse = strided(call.lse);
  m.block_table = indices(call.cache.block_table);
  m.table_stride = call.cache.block_table.strides[0];
  m.query_offsets = indices(call.query_offsets);
  m.kv_lengths = indices(call.kv_lengths);
  m.key_begin = indices(call.key_begin);
  m.key_end = indices(call.key_end);
  m.rules = {.causal = static_cast<int32_t>(shape.causal),
             .window_left = shape.window_left,
             .window_right = shape.window_right,
             .scale = shape.scale,
             .softcap = shape.softcap,
             .alibi_slopes = static_cast<const float*>(call.alibi_slopes.data),
             .sinks = static_cast<const float*>(call.sinks.data),
             .mask = strided_mask(call.mask),
             .mask_encoding = static_cast<int32_t>(shape.mask),
             .mask_dtype = static_cast<int32_t>(shape.mask_dtype),
             .tree = static_cast<const uint32_t*>(call.tree_mask.data),
             .tree_first_slots = indices(call.tree_first_slots),
             .tree_stride = call.tree_mask.strides[0]};
}

Status from_cuda(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return failed(what, ": CUDA error ", static_cast<int>(error), " (", cudaGetErrorString(error),
                ")");
}

Status from_cublas(const char* what, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return failed(what, ": cuBLAS status ", static_cast<int>(status), " (",
                cublasGetStatusString(status), ")");
}

struct Destroy {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
/// Of one call: a handle owns device memory.
using Handle = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, Destroy>;

StatusOr<Handle> make_handle(cudaStream_t stream) {
  cublasHandle_t made = nullptr;
  KVATTN_RETURN_IF_ERROR(from_cublas("cublasCreate", cublasCreate(&made)));
  Handle handle(made);
  KVATTN_RETURN_IF_ERROR(from_cublas("cublasSetStream", cublasSetStream(made, stream)));
  return handle;
}

/// One factor of a product of all planes: row-major matrices, seen by cuBLAS as their transposes.
struct Factor {
  const void* data;
  cublasOperation_t operation;
  int64_t row_elements, plane_elements;
};
struct Product {
  int64_t m, n, k;  // cuBLAS's: C has m rows and n columns, column major
  Factor a, b;
  float* c;
};

Status multiply(const Handle& handle, DType dtype, int64_t planes, const Product& p) {
  const cudaDataType type = dtype == DType::kF16    ? CUDA_R_16F
                            : dtype == DType::kBF16 ? CUDA_R_16BF
                                                    : CUDA_R_32F;
  const float one = 1, zero = 0;
  return from_cublas(
      "cublasGemmStridedBatchedEx",
      cublasGemmStridedBatchedEx(
          handle.get(), p.a.operation, p.b.operation, static_cast<int>(p.m), static_cast<int>(p.n),
          static_cast<int>(p.k), &one, p.a.data, type, static_cast<int>(p.a.row_elements),
          p.a.plane_elements, p.b.data, type, static_cast<int>(p.b.row_elements),
          p.b.plane_elements, &zero, p.c, CUDA_R_32F, static_cast<int>(p.m), p.m * p.n,
          static_cast<int>(planes), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/// scores[row][slot] = <query, key>
Product scores_of(const Materialised& m) {
  return {.m = m.slots_max,
          .n = m.rows_max,
          .k = m.dim_k,
          .a = {m.keys, CUBLAS_OP_T, m.dim_k, m.slots_max * m.dim_k},
          .b = {m.queries, CUBLAS_OP_N, m.dim_k, m.rows_max * m.dim_k},
          .c = m.scores};
}

/// sums[row] = sum of weights[row][slot] * value[slot]
Product sums_of(const Materialised& m) {
  return {.m = m.dim_v,
          .n = m.rows_max,
          .k = m.slots_max,
          .a = {m.values, CUBLAS_OP_N, m.dim_v, m.slots_max * m.dim_v},
          .b = {m.weights, CUBLAS_OP_N, m.slots_max, m.rows_max * m.slots_max},
          .c = m.sums};
}

constexpr const char* kNames[] = {"baseline", nullptr};

Status check_offered(const AttentionShape& shape, const BatchDescription& batch) {
  if (shape.rope.pairing != Rope::Pairing::kNone ||
      shape.cache_dtype.value_or(shape.dtype) != shape.dtype) {
    return unsupported("shape: the baseline offers neither RoPE nor a quantised cache");
  }
  if (!batch.variant.empty() && batch.variant != kNames[0]) {
    return unsupported("variant \"", batch.variant, "\" does not exist");
  }
  if (batch.split_slots != 0) return unsupported("batch: the baseline does not divide slots");
  if (batch.batch_invariant) return unsupported("batch: the baseline is not batch invariant");
  return {};
}

}  // namespace

StatusOr<Plan> make_plan(const AttentionShape& shape, const BatchDescription& batch) {
  KVATTN_RETURN_IF_ERROR(check_batch(shape, batch));
  KVATTN_RETURN_IF_ERROR(check_offered(shape, batch));
  Plan plan{.requests = static_cast<int64_t>(batch.query_lengths.size())};
  for (const int32_t length : batch.query_lengths) {
    plan.tokens += length;
    plan.longest_query = std::max<int64_t>(plan.longest_query, length);
  }
  for (const int32_t length : batch.kv_lengths) {
    plan.longest_kv = std::max<int64_t>(plan.longest_kv, length);
  }
  Materialised m = sized(shape, plan);
  const double bytes_about = 4.0 * static_cast<double>(m.planes()) *
                             static_cast<double>(m.rows_max + m.dim_k + m.dim_v) *
                             static_cast<double>(m.slots_max + m.dim_k + m.dim_v);
  if (m.planes() > kPlanesMax || bytes_about > static_cast<double>(kWorkspaceBytesMax)) {
    return unsupported("batch: expected at most ", kPlanesMax, " requests x KV heads and about ",
                       kWorkspaceBytesMax, " bytes of scores, got ", m.planes(), " and ",
                       bytes_about);
  }
  Workspace workspace(nullptr);
  place(workspace, dtype_bytes(shape.dtype), m);
  plan.workspace_bytes = static_cast<uint64_t>(workspace.used());
  return plan;
}

std::string_view variant_name(const Plan&) { return kNames[0]; }
const char* const* variant_names() { return kNames; }
const char* const* invariant_variant_names() { return kNames + 1; }

Status append(const AppendCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_append(call, shape));
  if (call.key.shape[0] == 0) return {};
  const baseline::Appended appended{
      .key_cache = strided(call.cache.key),
      .value_cache = strided(call.cache.value),
      .key = strided(call.key),
      .value = strided(call.value),
      .block_table = indices(call.cache.block_table),
      .table_stride = call.cache.block_table.strides[0],
      .token_offsets = indices(call.token_offsets),
      .first_slots = indices(call.first_slots),
      .tokens = static_cast<int32_t>(call.key.shape[0]),
      .requests = static_cast<int32_t>(call.first_slots.shape[0]),
      .kv_heads = static_cast<int32_t>(shape.kv_heads),
      .page_slots = static_cast<int32_t>(shape.page_slots),
      .dim_k = static_cast<int32_t>(shape.head_dim),
      .dim_v = static_cast<int32_t>(shape.value_in_key ? 0 : shape.dim_of_value())};
  return from_cuda("append", baseline::launch_append(appended, shape.dtype, call.stream));
}

Status merge(const MergeCall& call, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_merge(call, shape));
  if (call.output.shape[0] == 0) return {};
  const baseline::States states{.outputs = strided(call.outputs),
                                .lses = strided(call.lses),
                                .output = strided(call.output),
                                .lse = strided(call.lse),
                                .states = static_cast<int32_t>(call.outputs.shape[0]),
                                .tokens = static_cast<int32_t>(call.output.shape[0]),
                                .query_heads = static_cast<int32_t>(shape.query_heads),
                                .dim = static_cast<int32_t>(shape.dim_of_value())};
  return from_cuda("merge", baseline::launch_merge(states, shape.dtype, call.stream));
}

Status attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape) {
  KVATTN_RETURN_IF_ERROR(check_attend(call, plan, shape));
  if (plan.tokens == 0) return {};
  Materialised m = sized(shape, plan);
  Workspace workspace(call.workspace);
  place(workspace, dtype_bytes(shape.dtype), m);
  if (static_cast<uint64_t>(workspace.used()) > plan.workspace_bytes) {
    return refused("plan: was made for another shape, with ", plan.workspace_bytes,
                   " bytes of workspace, expected ", workspace.used());
  }
  fill(call, shape, m);
  const StatusOr<Handle> handle = make_handle(call.stream);
  if (!handle.ok()) return handle.status();
  KVATTN_RETURN_IF_ERROR(from_cuda("gather", baseline::launch_gather(m, shape.dtype, call.stream)));
  KVATTN_RETURN_IF_ERROR(multiply(*handle, shape.dtype, m.planes(), scores_of(m)));
  KVATTN_RETURN_IF_ERROR(
      from_cuda("softmax", baseline::launch_softmax(m, shape.dtype, call.stream)));
  KVATTN_RETURN_IF_ERROR(multiply(*handle, shape.dtype, m.planes(), sums_of(m)));
  return from_cuda("scatter", baseline::launch_scatter(m, shape.dtype, call.stream));
}

}  // namespace kvattn
