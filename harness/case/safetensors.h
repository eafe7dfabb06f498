// Purpose: tensors as a safetensors file: what frameworks write, and the side-car of a case.
// Contract: strict: the header is one JSON object, names are printable, offsets ascend without hole
// or overlap and end where the file ends, sizes are those of type and shape. Hostile bytes give one
// error that names the tensor. safetensors_text writes what parse_safetensors reads, the same bytes
// for the same tensors.
// Source: the format's own description, version 0.4: u64 length, JSON header, data.
// Example: KV_ASSIGN_OR_RETURN(const TensorFile file, parse_safetensors(std::move(text), path));
#pragma once

#include <string>
#include <string_view>

#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

/// `name` stands at the beginning of error messages: the file's name.
Result<TensorFile> parse_safetensors(std::string text, std::string_view name);

/// Tensors must be in the order of their data, which must have no holes.
std::string safetensors_text(const TensorFile& file);

}  // namespace kv
