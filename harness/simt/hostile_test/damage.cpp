#include "harness/simt/hostile_test/damage.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace kv::simt::hostile {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "1",
                                    "-1",
                                    "3",
                                    "7",
                                    "31",
                                    "32",
                                    "33",
                                    "255",
                                    "4096",
                                    "65535",
                                    "65536",
                                    "262144",
                                    "1073741824",
                                    "2147483647",
                                    "2147483648",
                                    "4294967295",
                                    "4294967296",
                                    "68719476736",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "18446744073709551615",
                                    "99999999999999999999",
                                    "-2147483648",
                                    "0x7fffffffffffffff",
                                    "0f7F800000",
                                    "0f7FC00000",
                                    "0d7FF0000000000000",
                                    "1e308"};
/// What the sources may not have; forms of them are made by exchange.
constexpr const char* kModifiers[] = {
    ".global", ".shared",  ".local",  ".const", ".param",   ".u8",     ".s16",  ".u32",   ".s64",
    ".b128",   ".f16",     ".bf16x2", ".f32",   ".f64",     ".v2",     ".v4",   ".v8",    ".wide",
    ".hi",     ".sat",     ".ftz",    ".rn",    ".rzi",     ".approx", ".sync", ".trans", ".x4",
    ".noftz",  ".relaxed", ".sys",    ".cg",    ".aligned", ".pred",   ".cta",  ".arrive"};
constexpr const char* kOpcodes[] = {"add",  "mul",  "mad", "ld",   "st",  "mov",    "cvt",  "atom",
                                    "red",  "shfl", "bar", "call", "ret", "exit",   "bra",  "brx",
                                    "prmt", "div",  "rem", "trap", "mma", "membar", "vote", "cp"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

bool is_word(char c) {
  return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

struct Span {
  size_t begin = 0, bytes = 0;
};

/// Words whose first character is in `first`; a '.' counts as the beginning of a modifier.
std::vector<Span> words_of(std::string_view line, std::string_view first) {
  std::vector<Span> words;
  for (size_t at = 0; at < line.size();) {
    if (!is_word(line[at]) && line[at] != '.') {
      ++at;
      continue;
    }
    const size_t begin = at++;
    while (at < line.size() && is_word(line[at])) ++at;
    if (first.find(line[begin]) != first.npos) words.push_back({begin, at - begin});
  }
  return words;
}

/// Exchanges one such word of the line for one of another line, or of a list.
template <class Replacement>
void exchange_word(std::string& line, std::string_view first, Choices& choices,
                   Replacement&& replacement) {
  const std::vector<Span> words = words_of(line, first);
  if (words.empty()) return;
  const Span word = choices.of(words);
  line.replace(word.begin, word.bytes, replacement());
}

std::string word_of(const std::vector<std::string>& lines, std::string_view first,
                    Choices& choices) {
  for (int tries = 0; tries < 20; ++tries) {
    const std::string& line = choices.of(lines);
    const std::vector<Span> words = words_of(line, first);
    if (words.empty()) continue;
    const Span word = choices.of(words);
    return line.substr(word.begin, word.bytes);
  }
  return "%r1";
}

void change_bytes(std::string& line, Choices& choices) {
  constexpr std::string_view kBytes = "{}[]()<>,;:+-|!@\"/*.%$_0fx9\n\0\xff";
  if (line.empty()) return;
  line[choices.below(line.size())] =
      choices.one_in(3) ? char(choices.below(256)) : kBytes[choices.below(kBytes.size())];
}

constexpr std::string_view kDigits = "0123456789";

void damage_line(std::vector<std::string>& lines, size_t at, Choices& choices) {
  std::string& line = lines[at];
  switch (choices.below(10)) {
    case 0:
      return change_bytes(line, choices);
    case 1:
    case 2:
      return exchange_word(line, "%", choices, [&] { return word_of(lines, "%", choices); });
    case 3:
    case 4:
      return exchange_word(line, kDigits, choices, [&] { return choices.of(kNumbers); });
    case 5:
      return exchange_word(line, ".", choices, [&] { return word_of(lines, ".", choices); });
    case 6:
      return exchange_word(line, ".", choices, [&] { return choices.of(kModifiers); });
    case 7:
      return exchange_word(line, "$", choices, [&] { return word_of(lines, "$", choices); });
    case 8:
      return exchange_word(line, "abcdefghijklmnopqrstuvwxyz", choices,
                           [&] { return choices.of(kOpcodes); });
    default:
      line = (choices.one_in(2) ? "@%p1 " : "@!%p2 ") + line;
  }
}

void damage_lines(std::vector<std::string>& lines, const std::vector<std::string>& others,
                  Choices& choices) {
  const size_t at = choices.below(lines.size()), to = choices.below(lines.size());
  switch (choices.below(12)) {
    case 0:
      lines.erase(lines.begin() + long(at));
      break;
    case 1: {
      const std::string copy = lines[at];
      lines.insert(lines.begin() + long(to), copy);
      break;
    }
    case 2:
      std::swap(lines[at], lines[to]);
      break;
    case 3:
      lines.insert(lines.begin() + long(to), choices.of(others));
      break;
    default:
      damage_line(lines, at, choices);
  }
  if (lines.empty()) lines.emplace_back("\n");
}

}  // namespace

std::string damaged_text(const std::vector<std::string>& sources, Choices& choices) {
  std::vector<std::string> lines = lines_of(choices.of(sources));
  const std::vector<std::string> others = lines_of(choices.of(sources));
  const size_t changes = 1 + choices.below(4);
  for (size_t i = 0; i < changes; ++i) damage_lines(lines, others, choices);
  std::string text;
  for (const std::string& line : lines) text += line;
  if (choices.one_in(20)) text.resize(choices.below(text.size()));
  return text;
}

Bytes damaged_bytes(const std::vector<Bytes>& sources, Choices& choices) {
  Bytes bytes = choices.of(sources);
  constexpr size_t kHeaders = 0x90;
  constexpr uint64_t kExtremes[] = {0,          1,          0x7f,       0xff,
                                    0x7fffffff, UINT32_MAX, UINT64_MAX, uint64_t{1} << 63};
  const size_t reach = choices.one_in(2) ? std::min(kHeaders, bytes.size()) : bytes.size();
  const size_t changes = 1 + choices.below(3);
  for (size_t i = 0; i < changes; ++i) {
    const size_t at = choices.below(reach);
    const uint64_t value = choices.one_in(2) ? choices.of(kExtremes) : choices.word();
    const size_t width = size_t{1} << choices.below(4);
    for (size_t k = 0; k < width && at + k < bytes.size(); ++k) {
      bytes[at + k] = uint8_t(value >> (8 * k));
    }
  }
  if (choices.one_in(4)) bytes.resize(choices.below(bytes.size()));
  return bytes;
}

}  // namespace kv::simt::hostile
