// Purpose: a folder, a small case and the plugins of the tests that run the program as a shell
// does. Contract: the folder is gone when the test ends; nothing is shared between tests. Example:
// cli_test.cpp.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/case/json.h"
#include "harness/cli/testing/program.h"

namespace kv::cli {

namespace fs = std::filesystem;

inline const std::string kPlugins = KV_BUILD_DIR "/lib/testdata/";
inline const std::string kHost = kPlugins + "libhost_plugin.so";
inline const std::string kMisbehaving = kPlugins + "libmisbehaving_plugin.so";

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class CliTest : public testing::Test {
 protected:
  CliTest() : folder_(testing::TempDir() + "/cli_test-" + std::to_string(getpid())) {
    fs::create_directories(folder_ + "/seeds");  // an empty corpus
  }
  ~CliTest() override { fs::remove_all(folder_); }

  /// A case that every plugin here supports: a prefill and a decode step.
  static Case small_case() {
    Case c;
    c.shape.query_heads = 4;
    c.shape.kv_heads = 2;
    c.shape.head_dim_k = c.shape.head_dim_v = 16;
    c.pool.page_slots = 4;
    c.pool.page_count = 8;
    const RequestId r(0);
    c.ops = {op::Admit{.request = r, .prompt_tokens = 9},
             op::Step{.rows = {{.request = r, .append = 9, .queries = 9}}},
             op::Step{.rows = {{.request = r, .append = 1, .queries = 1}}}};
    return c;
  }
  std::string stored(const std::string& name, const Case& c) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(save_case(path, c).ok());
    return path;
  }
  Ran replay_with(const char* fault, const std::vector<std::string>& more = {}) {
    // Only a hang has to wait for the limit.
    const bool hangs = std::string(fault) == "hang";
    std::vector<std::string> arguments = {"replay",         stored("small.json", small_case()),
                                          "--plugin",       kMisbehaving,
                                          "--call-seconds", hangs ? "1" : "60",
                                          "--memory-mib",   "1024"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_kverify(arguments, {.environment = {{"KVERIFY_TEST_FAULT", fault},
                                                   {"KVERIFY_TEST_MARKER", folder_ + "/marker"}}});
  }
  /// `check` without a corpus; findings go to the test's folder.
  Ran check_with(const std::string& plugin, const char* fault,
                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "check", "--plugin",         plugin,   "--corpus", folder_,
        "--out", folder_ + "/found", "--seed", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_kverify(arguments, {.environment = {{"KVERIFY_TEST_FAULT", fault}}});
  }
  std::vector<std::string> found() const {
    std::vector<std::string> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder_ + "/found", missing))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  std::string folder_;
};

}  // namespace kv::cli
