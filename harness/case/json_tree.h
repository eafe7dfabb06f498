// Purpose: strict JSON, for texts that somebody hostile may have written.
// Contract: RFC 8259 with limits on depth, number of values and keys of one object; a duplicate
// key, a number beyond double and invalid UTF-8 are errors. Members keep their order. Never throws.
// Example:  KV_ASSIGN_OR_RETURN(const Json tree, parse_json(text));
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/core/result.h"

namespace kv {

using Json = nlohmann::ordered_json;

/// Keys of one object; those of the schema have far fewer, and looking for duplicates is quadratic.
inline constexpr size_t kJsonMembersMax = 64;

/// The error says where ("line 3, column 7" or the path), and has no name of a file in it.
Result<Json> parse_json(std::string_view text, size_t members_max = kJsonMembersMax);

/// A value in a message: scalars as JSON in ASCII, at most 60 characters; else what it is.
std::string preview(const Json& value);

}  // namespace kv
