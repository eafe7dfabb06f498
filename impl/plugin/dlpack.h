// Purpose: DLPack's types of elements in kvattn's terms.
// Contract: pure; lawful codes, bits and lanes that kvattn has no type for are unsupported.
// Example:  StatusOr<DType> dtype = dtype_of("query", tensor.dtype);
#pragma once

#include "harness/plugin/kverify_plugin.h"
#include "kvattn/status.h"
#include "kvattn/tensor.h"

namespace kvattn {

/// `name` is of what has that type: a refusal begins with it.
StatusOr<DType> dtype_of(const char* name, DLDataType dtype);

}  // namespace kvattn
