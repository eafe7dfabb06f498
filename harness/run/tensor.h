// Purpose: DLPack tensors over device memory, with the shape and strides that they point into.
// Contract: a Tensor owns its shape and strides, not its memory; it does not move, so that the
// DLTensor's pointers stay good.
// Example: Tensor q(data, dl_type(DType::kF16), {tokens, heads, dim}); args.query = q.view();
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "harness/core/formats.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {

DLDataType dl_type(DType type);
inline constexpr DLDataType kDlInt32 = {kDLInt, 32, 1};
inline constexpr DLDataType kDlUint32 = {kDLUInt, 32, 1};
inline constexpr DLDataType kDlBool = {kDLBool, 8, 1};
inline constexpr DLDataType kDlInt64 = {kDLInt, 64, 1};
inline constexpr DLDataType kDlFloat32 = {kDLFloat, 32, 1};

class Tensor {
 public:
  static constexpr size_t kRankMax = 4;

  /// Dense, the last dimension innermost.
  Tensor(void* data, DLDataType type, std::initializer_list<int64_t> shape);
  Tensor(void* data, DLDataType type, std::initializer_list<int64_t> shape,
         std::initializer_list<int64_t> strides);
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// Valid while this Tensor lives.
  DLTensor view();

 private:
  void* data_ = nullptr;
  DLDataType type_ = {};
  int32_t rank_ = 0;
  std::array<int64_t, kRankMax> shape_ = {}, strides_ = {};
};

}  // namespace kv
