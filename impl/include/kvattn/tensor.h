// Purpose: a tensor in device memory, as kvattn's calls take it.
// Contract: a view owns nothing. Strides count elements; the innermost dimension is contiguous
// (stride 1). Any other stride is lawful as long as elements do not leave the 64-bit range.
// Example:  TensorView query{q, DType::kF16, 3, {tokens, heads, 64}, {heads * 64, 64, 1}};
#pragma once

#include <array>
#include <cstdint>

namespace kvattn {

enum class DType : uint8_t { kF16, kBF16, kF32, kI32, kU32, kBool, kI64, kE4M3, kE5M2, kI8 };

constexpr int64_t dtype_bytes(DType dtype) {
  constexpr int64_t bytes[] = {2, 2, 4, 4, 4, 1, 8, 1, 1, 1};
  return bytes[static_cast<int>(dtype)];
}
constexpr const char* dtype_name(DType dtype) {
  constexpr const char* names[] = {"fp16", "bf16",  "fp32", "int32", "uint32",
                                   "bool", "int64", "e4m3", "e5m2",  "int8"};
  return names[static_cast<int>(dtype)];
}

struct TensorView {
  void* data = nullptr;  // device
  DType dtype = DType::kF16;
  int rank = 0;
  std::array<int64_t, 4> shape = {};
  std::array<int64_t, 4> strides = {};  // elements
};

/// A dense row-major view.
inline TensorView dense_view(void* data, DType dtype, std::array<int64_t, 4> shape, int rank) {
  TensorView view{data, dtype, rank, shape, {}};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    view.strides[i] = stride;
    stride *= shape[i];
  }
  return view;
}

}  // namespace kvattn
