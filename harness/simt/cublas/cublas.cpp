// The exported functions. Prototypes from the toolkit's cublas_v2.h.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "harness/simt/cublas/gemm.h"
#include "harness/simt/cudart/handles.h"

namespace kv::simt::cublas {
namespace {

constexpr int kVersion = CUBLAS_VERSION;

/// What a handle remembers. Workspace and math mode change nothing here.
struct Context {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
};

struct Library {
  std::mutex mutex;
  cudart::HandleTable<Context, cublasHandle_t> contexts{0x6000000};
};

Library& library() {
  static auto* instance = new Library;  // exit handlers of the program may still call
  return *instance;
}

/// The frame of every call: `body` gets the handle's context.
template <class Body>
cublasStatus_t with_context(cublasHandle_t handle, Body&& body) {
  const std::lock_guard lock(library().mutex);
  Context* context = library().contexts.find(handle);
  return context ? body(*context) : CUBLAS_STATUS_NOT_INITIALIZED;
}

template <class T, class Read>
cublasStatus_t read(cublasHandle_t handle, T* out, Read&& get) {
  return with_context(handle, [&](Context& context) {
    if (!out) return CUBLAS_STATUS_INVALID_VALUE;
    *out = get(context);
    return CUBLAS_STATUS_SUCCESS;
  });
}

std::optional<Element> element_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return Element::kF16;
    case CUDA_R_16BF:
      return Element::kBf16;
    case CUDA_R_32F:
      return Element::kF32;
    default:
      return std::nullopt;
  }
}

/// How alpha and beta are given, or nothing for a computation that is not offered.
std::optional<bool> factors_are_half(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return true;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return false;
    default:
      return std::nullopt;
  }
}

Factor factor_of(const Context& context, const void* factor, bool is_half) {
  if (context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    return {.device = factor, .is_half = is_half};
  }
  return {.value = is_half ? __half2float(*static_cast<const __half*>(factor))
                           : *static_cast<const float*>(factor)};
}

bool is_operation(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

/// The arguments that all entry points share.
struct Call {
  cublasOperation_t a_op, b_op;
  int m, n, k;
  const void *alpha, *beta;
  cudaDataType a_type, b_type, c_type;
  int lda, ldb, ldc;
  int batch = 1;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

bool is_valid(const Call& call) {
  if (!is_operation(call.a_op) || !is_operation(call.b_op)) return false;
  if (call.m < 0 || call.n < 0 || call.k < 0 || call.batch < 0) return false;
  const int a_rows = call.a_op == CUBLAS_OP_N ? call.m : call.k;
  const int b_rows = call.b_op == CUBLAS_OP_N ? call.k : call.n;
  return call.lda >= std::max(1, a_rows) && call.ldb >= std::max(1, b_rows) &&
         call.ldc >= std::max(1, call.m) && call.alpha && call.beta;
}

cublasStatus_t run(cublasHandle_t handle, const Call& call, Matrices a, Matrices b, Matrices c) {
  return with_context(handle, [&](Context& context) {
    if (!is_valid(call)) return CUBLAS_STATUS_INVALID_VALUE;
    const auto input = element_of(call.a_type), output = element_of(call.c_type);
    const auto half_factors = factors_are_half(call.compute);
    if (!input || !output || !half_factors || call.b_type != call.a_type ||
        !is_supported(*input, *output) || (*half_factors && *output != Element::kF16)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    a.ld = call.lda;
    b.ld = call.ldb;
    c.ld = call.ldc;
    a.transposed = call.a_op != CUBLAS_OP_N;
    b.transposed = call.b_op != CUBLAS_OP_N;
    const cudaError_t error = launch_gemm({.m = call.m,
                                           .n = call.n,
                                           .k = call.k,
                                           .input = *input,
                                           .output = *output,
                                           .alpha = factor_of(context, call.alpha, *half_factors),
                                           .beta = factor_of(context, call.beta, *half_factors),
                                           .a = a,
                                           .b = b,
                                           .c = c,
                                           .batch = call.batch},
                                          context.stream);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}

Matrices strided(const void* base, long long stride = 0) {
  return {.base = const_cast<void*>(base), .stride = stride};
}

Matrices listed(const void* const array[]) { return {.array = const_cast<void**>(array)}; }

}  // namespace
}  // namespace kv::simt::cublas

using namespace kv::simt::cublas;

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  const std::lock_guard lock(library().mutex);
  *handle = library().contexts.insert({});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return with_context(handle, [&](Context&) {
    library().contexts.erase(handle);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = kVersion;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return with_context(handle, [&](Context& context) {
    context.stream = stream;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return read(handle, stream, [](const Context& context) { return context.stream; });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*, size_t) {
  return with_context(handle, [](Context&) { return CUBLAS_STATUS_SUCCESS; });
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return with_context(handle, [&](Context& context) {
    context.pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return read(handle, mode, [](const Context& context) { return context.pointer_mode; });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return with_context(handle, [&](Context& context) {
    context.math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return read(handle, mode, [](const Context& context) { return context.math_mode; });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return with_context(handle, [&](Context& context) {
    context.atomics_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return read(handle, mode, [](const Context& context) { return context.atomics_mode; });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  return run(handle,
             {a_op, b_op, m, n, k, alpha, beta, a_type, b_type, c_type, lda, ldb, ldc, 1, compute},
             strided(a), strided(b), strided(c));
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_op,
                                          cublasOperation_t b_op, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long a_stride, const void* b,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return run(
      handle,
      {a_op, b_op, m, n, k, alpha, beta, a_type, b_type, c_type, lda, ldb, ldc, batch, compute},
      strided(a, a_stride), strided(b, b_stride), strided(c, c_stride));
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t a_op,
                                   cublasOperation_t b_op, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType a_type, int lda,
                                   const void* const b[], cudaDataType b_type, int ldb,
                                   const void* beta, void* const c[], cudaDataType c_type, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return run(
      handle,
      {a_op, b_op, m, n, k, alpha, beta, a_type, b_type, c_type, lda, ldb, ldc, batch, compute},
      listed(a), listed(b), listed(c));
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_32F, lda, b, CUDA_R_32F, ldb,
                      beta, c, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_op,
                                         cublasOperation_t b_op, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long a_stride, const float* b, int ldb,
                                         long long b_stride, const float* beta, float* c, int ldc,
                                         long long c_stride, int batch) {
  return cublasGemmStridedBatchedEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_32F, lda,
                                    a_stride, b, CUDA_R_32F, ldb, b_stride, beta, c, CUDA_R_32F,
                                    ldc, c_stride, batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "an unknown CUBLAS_STATUS";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
