// The command line of kverify: every subcommand, its exit code, its one error.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "harness/certify/interrupt.h"
#include "harness/cli/options/offers.h"
#include "harness/cli/version.h"
#include "harness/core/cpu.h"
#include "harness/core/freed_memory.h"

namespace kv::cli {
namespace {

constexpr const char* kFooter = R"(
Exit codes: 0 pass, 1 a property failed, 2 bad input or usage, 3 something is missing on this
machine, 4 a finding did not come again, 5 too little ran to say anything, 6 time limit,
7 everything was unsupported, 130 interrupted. Where several apply: 3, 2, 1, 4, 5, 6, 7.)";

// In the order in which --help lists them.
constexpr void (*kOffers[])(CLI::App&, Chosen&) = {
    offer_check,              //
    offer_mutants,            //
    offer_mutants_attribute,  //
    offer_mutate,             //
    offer_mutate_shard,       //
    offer_replay,             //
    offer_report,             //
    offer_show,               //
    offer_minimize,           //
    offer_explain,            //
    offer_fuzz,               //
    offer_triage,             //
    offer_diff,               //
    offer_bisect,             //
    offer_profile,            //
    offer_exec,               //
    offer_trace,              //
    offer_import,             //
    offer_plan,               //
    offer_doctor,             //
    offer_kernels,            //
    offer_worker,             //
};

/// What no command foresaw is an error of the environment, told like any other.
Result<ExitCode> run_command(const Chosen& chosen) {
  try {
    if (const auto cpu = check_cpu_choice(); !cpu.ok()) return cpu.error();
    return chosen.run();
  } catch (const std::exception& error) {
    return environment_error(std::string("internal: ") + error.what());
  }
}

/// The words that the parser reads, last first, as it wants them. An option whose value may be left
/// out would take a `--` for its end, and then the words of the program for kverify's.
std::vector<std::string> own_words(int argc, char** argv, Chosen& chosen) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "exec") {
    const auto end = std::find(words.begin(), words.end(), "--");
    if (end != words.end()) chosen.program.assign(end + 1, words.end());
    words.erase(end, words.end());
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run(int argc, char** argv) {
  keep_freed_memory();
  CLI::App app(
      "kverify finds wrong results in CUDA attention and KV-cache code, proves that they "
      "are wrong, and names why. It needs no GPU.",
      "kverify");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("kverify ") + kVersion);
  app.require_subcommand(1);
  Chosen chosen;
  for (const auto offer : kOffers) offer(app, chosen);
  try {
    app.parse(own_words(argc, argv, chosen));
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    return static_cast<int>(asked ? ExitCode::kPass : ExitCode::kBadInput);
  }
  if (chosen.catches_interrupts) catch_interrupts();
  const Result<ExitCode> code = run_command(chosen);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "kverify: error: standard output could not be written in full\n");
    return static_cast<int>(ExitCode::kEnvironment);
  }
  if (code.ok()) return static_cast<int>(*code);
  if (interrupted()) return kInterruptedStatus;
  std::fprintf(stderr, "kverify: error: %s\n", code.error().message.c_str());
  return static_cast<int>(exit_code_of(code.error().kind));
}

}  // namespace

}  // namespace kv::cli

int main(int argc, char** argv) { return kv::cli::run(argc, argv); }
