// Every file that is not a lawful plugin gives one clear error. Loading happens in child processes:
// some of these plugins crash, and a process can hold one CUDA runtime only.
#include "harness/plugin/loader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/plugin/elf.h"
#include "harness/plugin/kverify_engine.h"

namespace kv {
namespace {

const std::string kPlugins = KV_BUILD_DIR "/lib/testdata/";

/// "ok: NAME", or the error, or "crash".
std::string load(const std::string& path, const char* fault = "none") {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setenv("KVERIFY_SIMT", KV_BUILD_DIR "/lib/simt/libcudart.so.13", 0);
    setenv("KVERIFY_TEST_FAULT", fault, 1);
    const auto runtime = load_runtime(DeviceKind::kCpu);
    std::string said;
    if (!runtime.ok()) {
      said = runtime.error().message;
    } else {
      const auto plugin = load_plugin(path, *runtime);
      said = plugin.ok() ? "ok: " + plugin->name : plugin.error().message;
    }
    (void)!write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "crash" : said;
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Loader, LoadsAPlugin) {
  EXPECT_EQ(load(kPlugins + "libhost_plugin.so"), "ok: host");
  EXPECT_EQ(load(kPlugins + "libmisbehaving_plugin.so"), "ok: misbehaving");
}

TEST(Loader, RefusesWhatThePluginDeclaresWrong) {
  const std::string path = kPlugins + "libmisbehaving_plugin.so";
  EXPECT_SAYS(load(path, "null"), "returned NULL");
  EXPECT_SAYS(load(path, "abi"), "plugin ABI 2, this kverify has 1");
  EXPECT_SAYS(load(path, "short"), "kv_plugin says struct_bytes 16");
  EXPECT_SAYS(load(path, "no_function"), "kv_kernel_level.attend is NULL");
  EXPECT_SAYS(load(path, "no_level"), "neither the kernel level nor the engine level");
  EXPECT_SAYS(load(path, "no_name"), "name is NULL");
  EXPECT_SAYS(load(path, "endless_name"), "1 to 128 characters");
  EXPECT_SAYS(load(path, "garbage_name"), "not printable ASCII: '??");
  EXPECT_SAYS(load(path, "convention"), "conventions.lse_base is 9, expected 0 to 1");
}

// Plugins built before the list of variants existed are shorter, and still good.
TEST(Loader, VariantsAreOptionalAndBounded) {
  const char* two[] = {"a", "b", nullptr};
  const std::vector<const char*> endless(1000, "a");
  kv_kernel_level level = {.struct_bytes = offsetof(kv_kernel_level, variants),
                           .supports = [](auto...) { return KV_OK; },
                           .plan = [](auto...) { return KV_OK; },
                           .append = [](auto...) { return KV_OK; },
                           .attend = [](auto...) { return KV_OK; },
                           .variants = two};
  const kv_plugin plugin = {.struct_bytes = sizeof plugin,
                            .abi = KV_PLUGIN_ABI,
                            .name = "n",
                            .version = "1",
                            .conventions = {.struct_bytes = sizeof(kv_conventions)},
                            .kernel = &level,
                            .engine = nullptr};
  EXPECT_EQ(check_plugin(&plugin)->variants.size(), 0u);
  level.struct_bytes = sizeof level;
  EXPECT_EQ(check_plugin(&plugin)->variants, (std::vector<std::string>{"a", "b"}));
  level.variants = endless.data();
  EXPECT_SAYS(check_plugin(&plugin).error().message, "more than 256 names");
}

/// Fails when an engine's table is called into without having been looked at.
TEST(Loader, RefusesAnIncompleteEngineLevel) {
  kv_engine_level level = {};
  const kv_plugin plugin = {.struct_bytes = sizeof plugin,
                            .abi = KV_PLUGIN_ABI,
                            .name = "n",
                            .version = "1",
                            .conventions = {.struct_bytes = sizeof(kv_conventions)},
                            .kernel = nullptr,
                            .engine = &level};
  EXPECT_SAYS(check_plugin(&plugin).error().message, "kv_engine_level says struct_bytes 0");
  level.struct_bytes = sizeof level;
  EXPECT_SAYS(check_plugin(&plugin).error().message, "kv_engine_level.supports is NULL");
  // All that is required lies between these two; the rest may be NULL.
  std::fill_n(
      reinterpret_cast<void**>(&level.supports),
      (offsetof(kv_engine_level, snapshot) - offsetof(kv_engine_level, supports)) / sizeof(void*),
      reinterpret_cast<void*>(std::abort));
  EXPECT_TRUE(check_plugin(&plugin).ok());
  level.fail_allocation = nullptr;
  EXPECT_SAYS(check_plugin(&plugin).error().message, "kv_engine_level.fail_allocation is NULL");
}

TEST(Loader, RefusesWhatIsNoPlugin) {
  EXPECT_SAYS(load(kPlugins + "libno_plugin.so"), "does not export kverify_plugin_v1");
  EXPECT_SAYS(load("/nonexistent.so"), "cannot read '/nonexistent.so'");
  EXPECT_SAYS(load(KV_SOURCE_DIR "/CMakeLists.txt"), "not ELF");
  EXPECT_SAYS(load(testing::TempDir()), "it is a folder");
  const std::string pipe = testing::TempDir() + "/plugin_pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_SAYS(load(pipe), "no regular file");  // at once, though nobody writes
  unlink(pipe.c_str());
}

TEST(Loader, RefusesOtherRuntimes) {
  EXPECT_SAYS(load(kPlugins + "libstatic_runtime_plugin.so"), "rebuild with -cudart shared");
  EXPECT_SAYS(load(kPlugins + "libother_runtime_plugin.so"), "is linked to libcudart.so.11");
}

// dlopen() alone dies of SIGBUS on some of these.
TEST(Loader, RefusesTruncatedFiles) {
  std::ifstream file(kPlugins + "libhost_plugin.so", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const std::string cut = testing::TempDir() + "/loader_test-" + std::to_string(getpid()) + ".so";
  for (const size_t percent : {0, 1, 10}) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() * percent / 100);
    const std::string said = load(cut);
    EXPECT_SAYS(said, "is not a plugin");
    EXPECT_NE(said, "crash");
  }
  std::filesystem::remove(cut);
}

TEST(Loader, SurvivesDamagedHeaders) {
  std::ifstream file(kPlugins + "libno_plugin.so", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const std::string path = testing::TempDir() + "/loader_test-" + std::to_string(getpid()) + "d.so";
  for (size_t byte = 0; byte < 0x400; ++byte) {  // ELF and program headers
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0xff);
    std::ofstream(path, std::ios::binary) << damaged;
    (void)inspect_elf(path);  // anything but a crash
  }
  std::filesystem::remove(path);
}

TEST(Runtime, SaysWhatIsMissing) {
  setenv("KVERIFY_SIMT", "/nonexistent/libcudart.so.13", 1);
  const auto runtime = load_runtime(DeviceKind::kCpu);
  unsetenv("KVERIFY_SIMT");
  ASSERT_FALSE(runtime.ok());
  EXPECT_EQ(runtime.error().kind, ErrorKind::kEnvironment);
  EXPECT_SAYS(runtime.error().message, "/nonexistent/libcudart.so.13: no such file");
  EXPECT_SAYS(runtime.error().message, "cudart_simt");
}

TEST(Runtime, RefusesALibraryThatIsNoRuntime) {
  setenv("KVERIFY_SIMT", (kPlugins + "libno_plugin.so").c_str(), 1);
  const auto runtime = load_runtime(DeviceKind::kCpu);
  unsetenv("KVERIFY_SIMT");
  ASSERT_FALSE(runtime.ok());
  EXPECT_EQ(runtime.error().kind, ErrorKind::kEnvironment);
  EXPECT_SAYS(runtime.error().message, "it lacks cudaMalloc");
}

}  // namespace
}  // namespace kv
