#include "harness/case/problem.h"

#include <fmt/format.h>

#include <charconv>

namespace kv {

void Problem::report(std::string_view expected, std::string_view got) {
  if (found()) return;
  message_ = fmt::format("{}: expected {}, got {}", path(), expected, got);
}

std::string Problem::path() const {
  std::string path;
  for (const Step& step : path_) {
    if (step.name == nullptr) {
      path += fmt::format("[{}]", step.index);
    } else {
      if (!path.empty()) path += '.';
      path += step.name;
    }
  }
  return path.empty() ? "case" : path;
}

std::string describe(const schema::Range<uint64_t>& range) {
  return fmt::format("an integer from {} to {}", range.low, range.high);
}
std::string describe(const schema::Range<int64_t>& range) {
  return fmt::format("an integer from {} to {}", range.low, range.high);
}
std::string describe(const schema::Range<double>& range) {
  return fmt::format("a finite number from {} to {}", decimal(range.low), decimal(range.high));
}
std::string describe(const schema::Text& text) {
  return fmt::format("UTF-8 text of at most {} bytes without control characters", text.bytes_max);
}
std::string describe(const schema::List& list) {
  return fmt::format("a list of {} to {} items", list.items_min, list.items_max);
}
std::string describe_one_of(std::span<const std::string_view> names) {
  return fmt::format("one of \"{}\"", fmt::join(names, "\", \""));
}

std::string decimal(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kShown ? "\"..." : "\"";
  return out;
}

}  // namespace kv
