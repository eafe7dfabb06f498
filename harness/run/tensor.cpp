#include "harness/run/tensor.h"

#include <algorithm>

#include "harness/core/check.h"

namespace kv {

DLDataType dl_type(DType type) {
  switch (type) {
    case DType::kF32:
      return {kDLFloat, 32, 1};
    case DType::kF16:
      return {kDLFloat, 16, 1};
    case DType::kBf16:
      return {kDLBfloat, 16, 1};
    case DType::kE4m3:
      return {kDLFloat8_e4m3fn, 8, 1};
    case DType::kE5m2:
      return {kDLFloat8_e5m2, 8, 1};
    case DType::kI8:
      return {kDLInt, 8, 1};
  }
  KV_CHECK(false, "unknown dtype");
}

Tensor::Tensor(void* data, DLDataType type, std::initializer_list<int64_t> shape,
               std::initializer_list<int64_t> strides)
    : data_(data), type_(type), rank_(static_cast<int32_t>(shape.size())) {
  KV_CHECK(shape.size() <= kRankMax && strides.size() == shape.size(), "rank");
  std::copy(shape.begin(), shape.end(), shape_.begin());
  std::copy(strides.begin(), strides.end(), strides_.begin());
}

Tensor::Tensor(void* data, DLDataType type, std::initializer_list<int64_t> shape)
    : Tensor(data, type, shape, shape) {
  int64_t stride = 1;
  for (int32_t i = rank_ - 1; i >= 0; --i) {
    strides_[static_cast<size_t>(i)] = stride;
    stride *= shape_[static_cast<size_t>(i)];
  }
}

DLTensor Tensor::view() {
  return {.data = data_,
          .device = {kDLCUDA, 0},
          .ndim = rank_,
          .dtype = type_,
          .shape = shape_.data(),
          .strides = strides_.data(),
          .byte_offset = 0};
}

}  // namespace kv
