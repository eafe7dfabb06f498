// Purpose: walks the lines of a trace and builds its error messages; shared by the readers.
// Contract: handles a missing final line end and CRLF; lines are bounded.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "harness/case/problem.h"
#include "harness/core/result.h"
#include "harness/trace/trace_limits.h"

namespace kv {

class TraceLines {
 public:
  TraceLines(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  /// The next line without its end, or nothing after the last.
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    ++line_;
    const size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  uint64_t line() const { return line_; }

  Error error(std::string_view what, std::string_view expected, std::string_view got) const {
    return bad_input(fmt::format("{}: line {}: {}: expected {}, got {}", name_, line_, what,
                                 expected, in_quotes(got)));
  }

 private:
  std::string_view rest_, name_;
  uint64_t line_ = 0;
};

}  // namespace kv
