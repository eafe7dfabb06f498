// Purpose: arrays as NumPy's `savez` and `savez_compressed` write them: a zip of .npy files.
// Contract: stored or deflated members, none encrypted, each name once, at most kTensorsMax; at
// most kTensorFileBytesMax bytes in all once unpacked, whatever the headers promise: a member that
// is longer or shorter than its header says, or whose checksum differs, is an error. Nothing is
// written to disk.
// Example: KV_ASSIGN_OR_RETURN(const TensorFile file, parse_npz(text, path));
#pragma once

#include <string_view>

#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

Result<TensorFile> parse_npz(std::string_view text, std::string_view name);

}  // namespace kv
