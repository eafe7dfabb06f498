// What import.md shows is what happens: the script writes a dump, it is imported as the page says,
// and the case passes on kvattn. A format that is described and not read, or output that has
// changed, makes it fail.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;

std::string page() {
  std::ostringstream text;
  text << std::ifstream(KV_SOURCE_DIR "/docs/import.md").rdbuf();
  return text.str();
}

TEST(ImportPage, TheExampleIsImportedAndPasses) {
  const fs::path folder = testing::TempDir() + "/import_page-" + std::to_string(getpid());
  fs::create_directories(folder);
  const std::string dump = folder / "call.safetensors", out = folder / "recorded.json";
  const std::string write =
      std::string(KV_PYTHON) + " '" KV_SOURCE_DIR "/docs/record_call.py' '" + dump + "'";
  ASSERT_EQ(std::system(write.c_str()), 0);
  const Ran made = run_kverify({"import", dump, "--prefix", "layers.{}.", "--out", out});
  ASSERT_EQ(made.status, 0) << made.err;
  std::string said = made.out;
  for (size_t at; (at = said.find(folder.string() + "/")) != said.npos;)
    said.erase(at, folder.string().size() + 1);
  EXPECT_NE(page().find(said), std::string::npos) << said;
  if (fs::exists(KV_BUILD_DIR "/lib/libkvattn_plugin.so")) {
    const Ran ran = run_kverify({"replay", out});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("1 pass"), std::string::npos) << ran.out;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kv::cli
