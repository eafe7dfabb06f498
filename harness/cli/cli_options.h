// Purpose: what the values of options must be like, and the option that all commands share.
// Contract: each validator refuses with one sentence: expected what, got what.
// Example:  command->add_option("--jobs", jobs)->check(whole(1, 256));
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace kv::cli {

// CLI11's own Range lets NaN through, and its integers wrap.
inline CLI::Validator number(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        const bool parsed = CLI::detail::lexical_cast(text, value);
        if (parsed && value >= low && value <= high) return std::string();
        return fmt::format("expected a number from {} to {}, got '{}'", low, high, text);
      },
      fmt::format("[{} - {}]", low, high));
}

inline CLI::Validator whole(uint64_t low, uint64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stop, status] = std::from_chars(text.data(), end, value);
        if (status == std::errc() && stop == end && value >= low && value <= high) {
          return std::string();
        }
        return fmt::format("expected an integer from {} to {}, got '{}'", low, high, text);
      },
      fmt::format("[{} - {}]", low, high));
}

inline CLI::Validator named() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "expected a path, got ''" : ""; }, "");
}

inline void add_json(CLI::App& command, std::optional<std::string>& path) {
  command
      .add_option_function<std::string>(
          "--json", [&path](const std::string& p) { path = p; },
          "write the result as JSON, to FILE or standard output; "
          "the same bytes on every machine")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[FILE]");
}

}  // namespace kv::cli
