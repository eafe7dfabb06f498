// Purpose: how a subcommand of kverify is offered: one file here for each, listed in cli.cpp.
// Contract: the parser fills the command's option struct (commands.h) and leaves in `Chosen` what
// to run; nothing runs while the command line is being read. A refused value is one sentence:
// expected what, got what.
// Example:  auto [command, o] = subcommand<ShowOptions>({app, "show", "say what a case does"},
//                                                       chosen, show);
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/commands.h"

namespace kv::cli {

/// What the command line asks for.
struct Chosen {
  std::function<Result<ExitCode>()> run;
  bool catches_interrupts = true;
  std::vector<std::string> program;  // of `exec`: the words after `--`
};

struct Named {
  CLI::App& parent;
  const char* name;
  const char* description;
};

template <typename Options>
struct Subcommand {
  CLI::App* command;
  Options* options;  // lives as long as the parser
};

/// A subcommand with options of its own; `run` takes them.
template <typename Options, typename Run>
Subcommand<Options> subcommand(const Named& named, Chosen& chosen, Run run) {
  CLI::App* command = named.parent.add_subcommand(named.name, named.description);
  auto options = std::make_shared<Options>();
  command->callback(
      [options, run, &chosen] { chosen.run = [options, run] { return run(*options); }; });
  return {command, options.get()};
}

/// SIGINT and SIGTERM end the command at once: nothing that it has found would be lost.
inline void end_at_once(CLI::App& command, Chosen& chosen) {
  command.preparse_callback([&chosen](size_t) { chosen.catches_interrupts = false; });
}

CLI::Validator number(double low, double high);     // CLI11's own Range lets NaN through
CLI::Validator whole(uint64_t low, uint64_t high);  // and its integers wrap
CLI::Validator checks();                            // names of checks of the CPU device
CLI::Validator named();                             // a path, not ""

/// --device and what a worker process may cost.
void add_running(CLI::App& command, BenchOptions& bench);
/// Those and --plugin.
void add_bench(CLI::App& command, BenchOptions& bench);
CLI::Option* add_device(CLI::App& command, DeviceKind& device);
void add_json(CLI::App& command, std::optional<std::string>& path);

/// Results never replace what they were made from: bad input when both name one file.
Result<void> keep_apart(const std::string& input, const std::string& output);

}  // namespace kv::cli
