// `kverify doctor`: what this machine has, and what is missing.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "harness/certify/examine.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"

namespace kv::cli {
namespace {

std::string line(const char* what, const std::string& text) {
  return fmt::format("  {:<12}{}\n", what, text);
}

std::string processor() {
  std::string features = "x86-64";
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) features += ", AVX2";
  if (__builtin_cpu_supports("fma")) features += ", FMA";
#endif
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return fmt::format("{} cores, {} (results do not depend on it), {} GiB of memory",
                     sysconf(_SC_NPROCESSORS_ONLN), features, pages * page_bytes >> 30);
}

std::string nvcc() {
  std::vector<std::filesystem::path> folders;
  const char* search = std::getenv("PATH");
  std::istringstream paths(search == nullptr ? "" : search);
  for (std::string folder; std::getline(paths, folder, ':');) folders.emplace_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.emplace_back(std::string(home) + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const auto& folder : folders) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / "nvcc", ignored)) return (folder / "nvcc").string();
  }
  return "not found (needed to build plugins, not to check them)";
}

/// Loads the plugin on a device in a worker, as every other command does.
Result<std::string> try_device(BenchOptions bench, DeviceKind device) {
  bench.device = device;
  KV_ASSIGN_OR_RETURN(const Examiner examiner, Examiner::start(bench));
  const Hello& hello = examiner.hello();
  return fmt::format("ok: {} {} on {}", hello.plugin.name, hello.plugin.version,
                     hello.runtime_path);
}

}  // namespace

Result<ExitCode> doctor(const BenchOptions& bench) {
  const Output output(std::nullopt);
  output.say(fmt::format("kverify {}\n", kVersion));
  output.say(line("machine", processor()));
  output.say(line("nvcc", nvcc()));
  output.say(line("plugin", bench.plugin_path.empty() ? default_plugin_path() : bench.plugin_path));
  const auto cpu = try_device(bench, DeviceKind::kCpu);
  output.say(line("device cpu", cpu.ok() ? *cpu : cpu.error().message));
  const auto cuda = try_device(bench, DeviceKind::kCuda);
  output.say(line("device cuda", cuda.ok() ? *cuda : cuda.error().message));
  // A GPU is optional; the CPU device and a plugin are not.
  return cpu.ok() ? ExitCode::kPass : exit_code_of(cpu.error().kind);
}

}  // namespace kv::cli
