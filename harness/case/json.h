// Purpose: cases as JSON files.
// Contract: strict: unknown, missing and duplicate keys, wrong types, values out of range and
// numbers that a field cannot hold exactly are bad input, with one message that names the path,
// what was expected and what was found. Canonical and exact: for every case c that check_case
// accepts, parse_case(case_to_json(c)) == c, and case_to_json(parse_case(t)) is the same text for
// every text of the same case. 64-bit seeds survive.
// Example:
//   KV_ASSIGN_OR_RETURN(Case c, load_case("corpus/seeds/one_token_decode.json"));
#pragma once

#include <string>
#include <string_view>

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv {

/// `name` stands at the beginning of error messages: the file's name.
Result<Case> parse_case(std::string_view text, std::string_view name);

/// The canonical text: groups and operations one on a line. `c` must be one that check_case
/// accepts.
std::string case_to_json(const Case& c);

Result<Case> load_case(const std::string& path);

/// Atomic: readers see the old file or the whole new one, also after a crash.
Result<void> save_case(const std::string& path, const Case& c);

}  // namespace kv
