#include "harness/case/utf8.h"

#include <cstdint>

namespace kv {
namespace {

// Length of the well-formed sequence at the start of `text`, 0 if there is none.
size_t sequence_length(std::string_view text, uint32_t& code_point) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto continuation = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    code_point = lead;
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF && continuation(1)) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    return 2;
  }
  if (lead >= 0xE0 && lead <= 0xEF && continuation(1) && continuation(2)) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    return code_point < 0x800 || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4 && continuation(1) && continuation(2) && continuation(3)) {
    code_point =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    return code_point < 0x10000 || code_point > 0x10FFFF ? 0 : 4;
  }
  return 0;
}

}  // namespace

bool printable_utf8(std::string_view text) {
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = sequence_length(text, code_point);
    if (length == 0) return false;
    const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
    if (control && code_point != '\n' && code_point != '\t') return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace kv
