#include "harness/plugin/text.h"

#include <algorithm>

namespace kv {

std::string printable(std::string_view foreign, size_t bytes_max) {
  std::string text(foreign.substr(0, bytes_max));
  const auto foul = [](char c) { return (c < ' ' || c > '~') && c != '\n' && c != '\t'; };
  std::replace_if(text.begin(), text.end(), foul, '?');
  if (foreign.size() > bytes_max && bytes_max >= 3) text.replace(bytes_max - 3, 3, "...");
  return text;
}

}  // namespace kv
