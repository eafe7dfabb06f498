// Purpose: one array as NumPy's `save` writes it.
// Contract: versions 1 to 3; little-endian C order of f2, f4, f8, i1, i2, i4, i8, u1, u4, u8 and
// bool. BF16, which NumPy does not have, is what ml_dtypes (V2) and views of its bits (u2) leave;
// formats of 8 bits that it does not have (V1) are bytes (U8).
// Everything else, and a size that is not that of the shape, is one error.
// Source: NumPy's format description, numpy.lib.format.
// Example: KV_RETURN_IF_ERROR(add_npy(file, "k", bytes, "dump.npz: k"));
#pragma once

#include <string>
#include <string_view>

#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

/// Appends the array in `bytes` to `file` under `name`. `where` begins error messages.
Result<void> add_npy(TensorFile& file, const std::string& name, std::string_view bytes,
                     std::string_view where);

}  // namespace kv
