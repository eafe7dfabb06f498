// A legacy kernel gates on new faults only, and continuous integration is told in its own formats.
#include "harness/cli/baseline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

Fault fault(std::set<std::string> features, std::set<std::string> names) {
  return {.fingerprint = "values output-value step decode",
          .features = std::move(features),
          .names = std::move(names)};
}

KnownFaults parsed(const std::string& line) {
  const auto known = KnownFaults::parse(line);
  EXPECT_TRUE(known.has_value()) << line;
  return known.value_or(KnownFaults());
}

TEST(KnownFaults, AnExplainedFaultIsKnownByWhatWouldExplainIt) {
  KnownFaults known;
  known.add(fault({"softcap"}, {"softcap-ignored", "key-dropped"}));
  known.add(fault({"softcap", "gqa"}, {"softcap-ignored", "scale-twice"}));
  EXPECT_EQ(known.lines(),
            std::vector<std::string>{"values output-value step decode; as softcap-ignored"});
  const KnownFaults read = parsed(known.lines()[0]);
  EXPECT_TRUE(read.knows(fault({}, {"softcap-ignored", "causal-ignored"})));
  EXPECT_FALSE(read.knows(fault({"softcap"}, {"key-dropped"}))) << "a second fault";
  EXPECT_FALSE(read.knows(fault({"softcap"}, {}))) << "one that nothing explains";
}

TEST(KnownFaults, AnUnexplainedFaultIsKnownByWhatItsCasesHad) {
  KnownFaults known;
  for (int i = 0; i < 4; ++i) known.add(fault({"gqa", "softcap"}, {}));
  EXPECT_TRUE(parsed(known.lines()[0]).knows(fault({}, {}))) << "four cases may agree by chance";
  for (int i = 0; i < 4; ++i) known.add(fault({"gqa", "alibi"}, {}));
  const KnownFaults read = parsed(known.lines()[0]);
  EXPECT_TRUE(read.knows(fault({"bf16", "gqa"}, {})));
  EXPECT_FALSE(read.knows(fault({"bf16"}, {}))) << "a fault that needs no groups is another";
  EXPECT_FALSE(read.knows(fault({"gqa"}, {"causal-ignored"})));
}

TEST(KnownFaults, AFingerprintAloneHidesAllThatHaveIt) {
  const KnownFaults known = parsed("values output-value step decode");
  EXPECT_TRUE(known.knows(fault({"gqa"}, {})));
  EXPECT_TRUE(known.knows(fault({}, {"causal-ignored"})));
  EXPECT_FALSE(KnownFaults::parse("values output-value; if GQA").has_value());
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Both faults give wrong values of one variant: their fingerprints are equal.
TEST(Baseline, AFurtherFaultOfTheSameVariantComesThrough) {
  const std::string folder = testing::TempDir() + "/baseline_further-" + std::to_string(getpid());
  std::filesystem::create_directories(folder + "/seeds");
  const std::string known = folder + "/known.txt";
  const auto check = [&](const char* fault, const char* seed, const char* option) {
    return run_kverify({"check", "--plugin", KV_BUILD_DIR "/lib/testdata/libmisbehaving_plugin.so",
                        "--corpus", folder, "--out", folder + "/found", "--seed", seed, "--cases",
                        "40", "--minimize-attempts", "0", "--keep-going", option, known},
                       {.environment = {{"KVERIFY_TEST_FAULT", fault}}});
  };
  Ran ran = check("no_softcap", "1", "--write-baseline");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(text_of(known), "values output-value step host; as softcap-ignored");
  for (const char* seed : {"2", "3"}) {
    ran = check("no_softcap", seed, "--baseline");
    EXPECT_EQ(ran.status, 0) << seed << ran.out << ran.err << text_of(known);
    EXPECT_SAYS(ran.out, "no other found");
  }
  for (const char* more : {"no_window", "no_softcap_no_window"}) {
    ran = check(more, "2", "--baseline");
    EXPECT_EQ(ran.status, 1) << more << ran.out << ran.err;
    EXPECT_SAYS(ran.out, "\n    values output-value step host; as window-ignored");
  }
  std::filesystem::remove_all(folder);
}

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
