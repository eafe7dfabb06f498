// Products against an independent triple loop. All values are small integers, so every sum is exact
// in each type and the comparison is for equality.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "harness/core/formats.h"
#include "harness/core/philox.h"
#include "harness/simt/control/kv_simt_control.h"

namespace {

using kv::DType;

struct Case {
  bool a_transposed = false, b_transposed = false;
  int m = 1, n = 1, k = 1;
  int pad_a = 0, pad_b = 0, pad_c = 0;  // rows of padding in the leading dimensions
  float alpha = 1, beta = 0;
  int batch = 1;
  DType input = DType::kF32, output = DType::kF32;

  int lda() const { return std::max(1, a_transposed ? k : m) + pad_a; }
  int ldb() const { return std::max(1, b_transposed ? n : k) + pad_b; }
  int ldc() const { return std::max(1, m) + pad_c; }
  size_t a_count() const { return size_t(lda()) * size_t(a_transposed ? m : k); }
  size_t b_count() const { return size_t(ldb()) * size_t(b_transposed ? k : n); }
  size_t c_count() const { return size_t(ldc()) * size_t(n); }
};

cudaDataType cuda_type(DType type) {
  return type == DType::kF32 ? CUDA_R_32F : type == DType::kF16 ? CUDA_R_16F : CUDA_R_16BF;
}

std::vector<double> small_integers(size_t count, uint64_t stream) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>(kv::Philox{.key = 1}.word(stream, i) % 5) - 2.0;
  }
  return values;
}

/// A batch of matrices in device memory, `count` elements each.
struct Batch {
  void* device = nullptr;
  std::vector<double> values;
  DType type;

  Batch(DType t, const std::vector<double>& host) : values(host), type(t) {
    std::vector<std::byte> bits(host.size() * kv::dtype_bytes(t));
    kv::encode_row(t, host.data(), host.size(), bits.data());
    EXPECT_EQ(cudaMalloc(&device, bits.size()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, bits.data(), bits.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Batch() { cudaFree(device); }
  std::vector<double> read() const {
    std::vector<std::byte> bits(values.size() * kv::dtype_bytes(type));
    EXPECT_EQ(cudaMemcpy(bits.data(), device, bits.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    std::vector<double> out(values.size());
    kv::decode_row(type, bits.data(), out.size(), out.data());
    return out;
  }
  void* at(size_t element) const {
    return static_cast<std::byte*>(device) + element * kv::dtype_bytes(type);
  }
};

std::vector<double> expected(const Case& c, const Batch& a, const Batch& b, const Batch& out) {
  std::vector<double> result = out.values;
  for (int batch = 0; batch < c.batch; ++batch) {
    const double* pa = a.values.data() + size_t(batch) * c.a_count();
    const double* pb = b.values.data() + size_t(batch) * c.b_count();
    double* pc = result.data() + size_t(batch) * c.c_count();
    for (int i = 0; i < c.m; ++i) {
      for (int j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int l = 0; l < c.k; ++l) {
          sum += pa[c.a_transposed ? l + i * c.lda() : i + l * c.lda()] *
                 pb[c.b_transposed ? j + l * c.ldb() : l + j * c.ldb()];
        }
        double& entry = pc[i + j * c.ldc()];
        entry = double{c.alpha} * sum + (c.beta == 0 ? 0.0 : double{c.beta} * entry);
      }
    }
  }
  return result;
}

class Cublas : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(control().reset(), 0);
    ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(control().finding_count(), 0u);
  }
  static const kv_simt_control_v1& control() { return *kv_simt_control(1); }

  cublasStatus_t strided(const Case& c, const Batch& a, const Batch& b, const Batch& out) {
    return cublasGemmStridedBatchedEx(
        handle, c.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        c.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, c.m, c.n, c.k, &c.alpha, a.device,
        cuda_type(c.input), c.lda(), static_cast<long long>(c.a_count()), b.device,
        cuda_type(c.input), c.ldb(), static_cast<long long>(c.b_count()), &c.beta, out.device,
        cuda_type(c.output), c.ldc(), static_cast<long long>(c.c_count()), c.batch,
        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  }

  void check(const Case& c) {
    SCOPED_TRACE(testing::Message() << "ta " << c.a_transposed << " tb " << c.b_transposed << " "
                                    << c.m << "x" << c.n << "x" << c.k << " beta " << c.beta);
    const size_t batch = size_t(c.batch);
    const Batch a(c.input, small_integers(batch * c.a_count(), 1));
    const Batch b(c.input, small_integers(batch * c.b_count(), 2));
    std::vector<double> before = small_integers(batch * c.c_count(), 3);
    if (c.beta == 0) {  // must not be read: NaN would stay
      before.assign(before.size(), std::numeric_limits<double>::quiet_NaN());
    }
    const Batch out(c.output, before);
    ASSERT_EQ(strided(c, a, b, out), CUBLAS_STATUS_SUCCESS);
    const auto want = expected(c, a, b, out), got = out.read();
    for (size_t i = 0; i < want.size(); ++i) {
      const bool same = want[i] == got[i] || (want[i] != want[i] && got[i] != got[i]);
      ASSERT_TRUE(same) << "element " << i << ": expected " << want[i] << ", got " << got[i];
    }
  }

  cublasHandle_t handle = nullptr;
};

TEST_F(Cublas, TransposesAndLeadingDimensions) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const float beta : {0.0f, 1.0f, -2.0f}) {
        check({.a_transposed = ta,
               .b_transposed = tb,
               .m = 33,
               .n = 5,
               .k = 7,
               .pad_a = 2,
               .pad_b = 3,
               .pad_c = 1,
               .alpha = 2,
               .beta = beta});
      }
    }
  }
}

TEST_F(Cublas, TypesAndBatches) {
  const std::pair<DType, DType> types[] = {{DType::kF16, DType::kF16},
                                           {DType::kF16, DType::kF32},
                                           {DType::kBf16, DType::kBf16},
                                           {DType::kBf16, DType::kF32},
                                           {DType::kF32, DType::kF32}};
  for (const auto& [input, output] : types) {
    check({.b_transposed = true,
           .m = 4,
           .n = 9,
           .k = 16,
           .pad_c = 3,
           .beta = 1,
           .batch = 3,
           .input = input,
           .output = output});
  }
}

TEST_F(Cublas, DegenerateSizes) {
  check({.m = 1, .n = 1, .k = 1});
  check({.m = 3, .n = 2, .k = 0, .beta = 0});
  check({.m = 3, .n = 2, .k = 0, .beta = 2});
  check({.m = 3, .n = 2, .k = 4, .alpha = 0, .beta = 1});
}

TEST_F(Cublas, ArraysOfPointers) {
  const Case c{.a_transposed = true, .m = 3, .n = 4, .k = 5, .beta = 1, .batch = 2};
  const Batch a(c.input, small_integers(2 * c.a_count(), 1));
  const Batch b(c.input, small_integers(2 * c.b_count(), 2));
  const Batch out(c.output, small_integers(2 * c.c_count(), 3));
  const void* pointers[6] = {a.device,          a.at(c.a_count()), b.device,
                             b.at(c.b_count()), out.device,        out.at(c.c_count())};
  void* table = nullptr;
  ASSERT_EQ(cudaMalloc(&table, sizeof pointers), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(table, pointers, sizeof pointers, cudaMemcpyHostToDevice), cudaSuccess);
  void** list = static_cast<void**>(table);
  ASSERT_EQ(
      cublasGemmBatchedEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, c.m, c.n, c.k, &c.alpha, list,
                          CUDA_R_32F, c.lda(), list + 2, CUDA_R_32F, c.ldb(), &c.beta, list + 4,
                          CUDA_R_32F, c.ldc(), 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.read(), expected(c, a, b, out));
}

TEST_F(Cublas, FactorsInDeviceMemoryAndHalfFactors) {
  const Case c{
      .m = 3, .n = 4, .k = 5, .alpha = 3, .beta = -1, .input = DType::kF16, .output = DType::kF16};
  const Batch a(c.input, small_integers(c.a_count(), 1));
  const Batch b(c.input, small_integers(c.b_count(), 2));
  const Batch out(c.output, small_integers(c.c_count(), 3));
  const Batch factors(DType::kF16, {3, -1});
  ASSERT_EQ(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, c.m, c.n, c.k, factors.device, a.device,
                         CUDA_R_16F, c.lda(), b.device, CUDA_R_16F, c.ldb(), factors.at(1),
                         out.device, CUDA_R_16F, c.ldc(), CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.read(), expected(c, a, b, out));
}

TEST_F(Cublas, WorkGoesToTheHandlesStream) {
  cudaStream_t stream = nullptr, back = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasGetStream(handle, &back), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, stream);
  const Case c{.m = 2, .n = 2, .k = 2};
  const Batch a(c.input, {1, 0, 0, 1}), b(c.input, {1, 2, 3, 4}), out(c.output, {9, 9, 9, 9});
  ASSERT_EQ(strided(c, a, b, out), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.read()[0], 9) << "nobody has waited yet";
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(control().finding_count(), 1u) << "a race between two streams";
  EXPECT_EQ(control().clear_findings(), 0);
  EXPECT_EQ(out.read(), b.values);
}

TEST_F(Cublas, BadArgumentsAreRefused) {
  const Case good{.m = 2, .n = 2, .k = 2};
  const Batch a(good.input, std::vector<double>(4, 1)), b(good.input, std::vector<double>(4, 1));
  const Batch out(good.output, std::vector<double>(4, 7));
  EXPECT_EQ(strided({.m = -1, .n = 2, .k = 2, .pad_a = 5, .pad_c = 5}, a, b, out),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(strided({.m = 2, .n = 2, .k = 2, .pad_a = -1}, a, b, out), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(strided({.m = 2, .n = 2, .k = 2, .pad_c = -1}, a, b, out), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(strided({.m = 2, .n = 2, .k = 2, .batch = -1}, a, b, out), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(
      strided({.m = 2, .n = 2, .k = 2, .input = DType::kF16, .output = DType::kBf16}, a, b, out),
      CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(strided({.m = 0, .n = 2, .k = 2}, a, b, out), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.read(), out.values);
  EXPECT_EQ(cublasSetStream(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
