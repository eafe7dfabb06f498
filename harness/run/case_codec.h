// Purpose: a case from kverify to the worker that runs it, as bytes: to write and read its JSON
// costs either of them a tenth of a small case. Contract: both ends are the same program, so the
// fields of the schema need no names; decode_case gives the very case that was encoded, and nothing
// for bytes that are none. Neither checks what the case means. Tensors beside a case are not part
// of the bytes. Example:  decode_case(encode_case(c)) == c
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/case/case.h"

namespace kv {

std::vector<std::byte> encode_case(const Case& c);
std::optional<Case> decode_case(std::span<const std::byte> bytes);

}  // namespace kv
