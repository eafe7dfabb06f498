#include "impl/plugin/dlpack.h"

namespace kvattn {

StatusOr<DType> dtype_of(const char* name, DLDataType dtype) {
  if (dtype.lanes == 1) {
    if (dtype.code == kDLFloat && dtype.bits == 16) return DType::kF16;
    if (dtype.code == kDLBfloat && dtype.bits == 16) return DType::kBF16;
    if (dtype.code == kDLFloat && dtype.bits == 32) return DType::kF32;
    if (dtype.code == kDLInt && dtype.bits == 32) return DType::kI32;
    if (dtype.code == kDLUInt && dtype.bits == 32) return DType::kU32;
    if (dtype.code == kDLBool && dtype.bits == 8) return DType::kBool;
    if (dtype.code == kDLInt && dtype.bits == 64) return DType::kI64;
    if (dtype.code == kDLFloat8_e4m3fn && dtype.bits == 8) return DType::kE4M3;
    if (dtype.code == kDLFloat8_e5m2 && dtype.bits == 8) return DType::kE5M2;
    if (dtype.code == kDLInt && dtype.bits == 8) return DType::kI8;
  }
  return unsupported(name,
                     ": expected fp16, bf16, fp32, e4m3, e5m2, int8, int32, int64, uint32 or ",
                     "bool, got type code ", int{dtype.code}, " with ", int{dtype.bits},
                     " bits and ", dtype.lanes, " lanes");
}

}  // namespace kvattn
