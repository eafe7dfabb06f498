// Purpose: text in a case is shown to people and written to terminals.
// Contract: true for well-formed UTF-8 (Unicode 15, table 3-7: no surrogates, no overlong forms)
// without control characters other than line feed and tab.
#pragma once

#include <string_view>

namespace kv {

bool printable_utf8(std::string_view text);

}  // namespace kv
