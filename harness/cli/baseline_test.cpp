// A legacy kernel gates on new faults only, and continuous integration is told in its own formats.
#include "harness/cli/baseline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Baseline, GatesOnNewFaultsOnly) {
  const std::string folder = testing::TempDir() + "/baseline_test-" + std::to_string(getpid());
  std::filesystem::create_directories(folder + "/seeds");
  const std::string known = folder + "/known.txt", junit = folder + "/j.xml";
  const auto check = [&](const char* fault, std::vector<std::string> more) {
    const std::string plugin = KV_BUILD_DIR "/lib/testdata/libmisbehaving_plugin.so";
    std::vector<std::string> arguments = {"check",
                                          "--plugin",
                                          plugin,
                                          "--corpus",
                                          folder,
                                          "--out",
                                          folder + "/found",
                                          "--seed",
                                          "1",
                                          "--cases",
                                          "5",
                                          "--minimize-attempts",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_kverify(arguments, {.environment = {{"KVERIFY_TEST_FAULT", fault}}});
  };
  EXPECT_EQ(check("wrong_value", {"--write-baseline", known}).status, 1);
  Ran ran = check("wrong_value", {"--baseline", known, "--junit", junit});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "no other found");
  EXPECT_SAYS(text_of(junit), "failures=\"0\"");
  ran = check("wrong_lse", {"--baseline", known, "--junit", junit, "--sarif", folder + "/s.json",
                            "--annotations", "--html", folder + "/r.html"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(text_of(junit), "<failure type=\"lse-");
  EXPECT_SAYS(text_of(folder + "/s.json"), "\"ruleId\": \"lse-");
  EXPECT_SAYS(ran.out, "::error file=");
  EXPECT_SAYS(text_of(folder + "/r.html"), "<h2 class=\"bad\">fail: lse-");
  EXPECT_EQ(check("", {"--baseline", folder + "/none.txt"}).status, 2);
  for (const char* junk : {"{\"version\": 1", "values", "values ", "valuesx a", "values \x01"}) {
    std::ofstream(folder + "/junk.txt") << "# two lines\n" << junk << "\n";
    ran = check("", {"--baseline", folder + "/junk.txt"});
    EXPECT_EQ(ran.status, 2) << junk;
    EXPECT_SAYS(ran.err, "junk.txt:2: expected a fingerprint");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kv::cli
