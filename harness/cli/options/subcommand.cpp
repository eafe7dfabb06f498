// What the options of several subcommands share.
#include "harness/cli/options/subcommand.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "harness/simt/control/check_names.h"

namespace kv::cli {

CLI::Validator number(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        const bool parsed = CLI::detail::lexical_cast(text, value);
        if (parsed && value >= low && value <= high) return std::string();
        return fmt::format("expected a number from {} to {}, got '{}'", low, high, text);
      },
      fmt::format("[{} - {}]", low, high));
}

CLI::Validator whole(uint64_t low, uint64_t high) {
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

CLI::Validator checks() {
  return CLI::Validator(
      [](std::string& text) {
        if (checks_named(text)) return std::string();
        return fmt::format("expected {}, got '{}'", kCheckNamesExpected, text);
      },
      "");
}

CLI::Validator named() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "expected a path, got ''" : ""; }, "");
}

CLI::Option* add_device(CLI::App& command, DeviceKind& device) {
  return command
      .add_option_function<std::string>(
          "--device",
          [&device](const std::string& name) {
            device = name == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
          },
          "cpu (no GPU needed, checks every access) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->default_str("cpu");
}

void add_bench(CLI::App& command, BenchOptions& bench) {
  command
      .add_option("--plugin", bench.plugin_path,
                  "library to check (default: our own kvattn, beside this program)")
      ->check(named());
  add_running(command, bench);
}

void add_running(CLI::App& command, BenchOptions& bench) {
  add_device(command, bench.device);
  command
      .add_option("--call-seconds", bench.call_seconds,
                  "longest call into the plugin; large cases get more")
      ->check(number(0.1, 1e6))
      ->capture_default_str();
  command
      .add_option("--memory-mib", bench.memory_mib,
                  "memory of a worker process (default: 12 GiB or 70 % of the machine's)")
      ->check(whole(64, uint64_t{1} << 30));
  command
      .add_option("--checks", bench.checks,
                  "checks of the CPU device: memory, undefined, race, barrier, async, leak "
                  "(default: all; leaks are listed, and fail where they are named)")
      ->check(checks());
  command
      .add_option("--suppress", bench.suppressions_path,
                  "file of findings of the CPU device that are accepted: 'kind file:line reason'")
      ->check(named());
}

void add_json(CLI::App& command, std::optional<std::string>& path) {
  command
      .add_option_function<std::string>(
          "--json", [&path](const std::string& p) { path = p; },
          "write the result as JSON, to FILE or standard output; "
          "the same bytes on every machine")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[FILE]");
}

Result<void> keep_apart(const std::string& input, const std::string& output) {
  std::error_code missing;
  if (input.empty() || output.empty()) return {};
  if (!std::filesystem::equivalent(input, output, missing)) return {};
  return bad_input(output + ": expected another file than the input, got the input itself");
}

}  // namespace kv::cli
