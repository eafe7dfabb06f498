// End to end, with plugins that need no kernel: the program as a shell sees it. The exit code of
// every ending is one of these tests.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

// ---------------------------------------------------------------- 0

TEST_F(CliTest, SaysItsVersionAndHelp) {
  EXPECT_EQ(run_kverify({"--version"}).status, 0);
  EXPECT_SAYS(run_kverify({"--version"}).out, "kverify 0.");
  const Ran help = run_kverify({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* word : {"check", "replay", "show", "trace", "doctor", "kernels", "Exit codes"})
    EXPECT_SAYS(help.out, word);
  EXPECT_EQ(help.out.find("internal"), std::string::npos);
}

TEST_F(CliTest, SaysWhichKernelRunsForWhat) {
  const Ran ran = run_kverify({"kernels", "--plugin", kHost});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_SAYS(ran.out, "f16   f16   decode            host              host\n");
  EXPECT_SAYS(ran.out, "not offered\n  padding holes\n");
}

TEST_F(CliTest, PassesACorrectPlugin) {
  const Ran ran = check_with(kHost, "none", {"--cases", "50"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "50 cases:");
  EXPECT_SAYS(ran.out, " 0 fail");
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(replay_with("none").status, 0);
}

TEST_F(CliTest, ShowsACase) {
  const Ran ran = run_kverify({"show", stored("small.json", small_case())});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_SAYS(ran.out, "step");
}

TEST_F(CliTest, WritesACaseThatReachesEveryKey) {
  const std::string reached = folder_ + "/reached.json";
  const Ran ran = run_kverify({"show", stored("small.json", small_case()), "--reach", reached});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, ": complete");
  EXPECT_EQ(run_kverify({"show", reached}).status, 0);
}

// ---------------------------------------------------------------- 1

TEST_F(CliTest, FailsAWrongPluginAndStoresTheCase) {
  const Ran ran = check_with(kMisbehaving, "wrong_value", {"--cases", "20"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "kverify replay");
  const auto files = found();
  ASSERT_FALSE(files.empty());
  const Ran again = run_kverify({"replay", files[0], "--plugin", kMisbehaving},
                                {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(again.status, 1) << again.out << again.err;
  const Ran correct = run_kverify({"replay", files[0], "--plugin", kHost});
  EXPECT_EQ(correct.status, 0) << correct.out << correct.err;
}

TEST_F(CliTest, EveryMisbehaviourIsOneFinding) {
  for (const auto& [fault, word] : std::vector<std::pair<const char*, const char*>>{
           {"segfault", "SIGSEGV"},
           {"exit", "exited with status 0"},
           {"hang", "no progress within the time limit"},
           {"memory", "memory limit"},
           {"refuses", "refused"},
           {"status", "returned 77"},
           {"cuda_error", "left a CUDA error behind"},
           {"unwritten", "unwritten"},
           {"wrong_value", "fail"},
           {"wrong_lse", "lse"},
           {"writes_query", "query"},
           {"writes_table", "block_table"},
           {"writes_slack", "fail"}}) {
    const Ran ran = replay_with(fault);
    EXPECT_EQ(ran.status, 1) << fault << "\n" << ran.out << ran.err;
    EXPECT_SAYS(ran.out, word);
    EXPECT_TRUE(ran.err.empty()) << ran.err;
  }
}

TEST_F(CliTest, TheRunGoesOnAfterACrash) {
  const Ran ran = check_with(kMisbehaving, "segfault", {"--cases", "6"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "6 cases:");
}

TEST_F(CliTest, AFailureThatNeedsHistoryKeepsIt) {
  const Ran ran = check_with(kMisbehaving, "history", {"--cases", "90"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "with history");
  ASSERT_FALSE(found().empty());
  for (const std::string& path : found()) {
    // A repeat that differs inside one case is told at once; it does not look for a history.
    if (path.find("/nondeterministic-") != std::string::npos) continue;
    const Ran again = run_kverify({"replay", path, "--plugin", kMisbehaving},
                                  {.environment = {{"KVERIFY_TEST_FAULT", "history"}}});
    EXPECT_EQ(again.status, 1) << path << again.out << again.err;
  }
}

// Fails when the file of the corpus, which passes by itself, is named for the failure.
TEST_F(CliTest, ACaseOfTheCorpusThatNeedsHistoryIsStoredWithIt) {
  Case c = small_case();
  for (int i = 10; i < 50; ++i) {
    c.data.seed = static_cast<uint64_t>(i);
    stored("seeds/" + std::to_string(i) + ".json", c);
  }
  const Ran ran = check_with(kMisbehaving, "history", {"--cases", "0"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "with history");
  ASSERT_FALSE(found().empty()) << ran.out;
  for (const std::string& path : found()) {
    if (path.find("/nondeterministic-") != std::string::npos) continue;
    const Ran again = run_kverify({"replay", path, "--plugin", kMisbehaving},
                                  {.environment = {{"KVERIFY_TEST_FAULT", "history"}}});
    EXPECT_EQ(again.status, 1) << path << again.out << again.err;
  }
}

// ---------------------------------------------------------------- 2

TEST_F(CliTest, BadUsageIsTwo) {
  EXPECT_EQ(run_kverify({}).status, 2);
  EXPECT_EQ(run_kverify({"frobnicate"}).status, 2);
  EXPECT_EQ(run_kverify({"check", "--cases", "many"}).status, 2);
  EXPECT_EQ(run_kverify({"check", "--device", "tpu"}).status, 2);
  EXPECT_EQ(run_kverify({"replay"}).status, 2);
}

TEST_F(CliTest, NumbersAreNeitherWrappedNorNaN) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--cases", "-1"},
                                             {"--cases", "99999999999999999999999"},
                                             {"--seed", "-1"},
                                             {"--seed", "18446744073709551616"},
                                             {"--minutes", "nan"},
                                             {"--call-seconds", "nan"},
                                             {"--memory-mib", "-64"},
                                             {"--plugin", ""}}) {
    const Ran ran = run_kverify({"check", "--corpus", folder_, bad[0], bad[1]});
    EXPECT_EQ(ran.status, 2) << bad[0] << " " << bad[1] << ran.out << ran.err;
  }
}

/// Fails when one output silently replaces another.
TEST_F(CliTest, TwoOutputsCannotBeOneFile) {
  const std::string file = folder_ + "/out";
  const Ran ran = check_with(kHost, "none", {"--cases", "1", "--junit", file, "--sarif", file});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_SAYS(ran.err, "--sarif: expected another file than that of --junit, got '" + file + "'");
}

// Kills: hours of work whose report cannot be written.
TEST_F(CliTest, AFolderThatIsNotThereIsToldBeforeTheFirstCase) {
  const Ran ran = check_with(kHost, "none", {"--cases", "1", "--junit", "/nonexistent/a.xml"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_SAYS(ran.err, "--junit /nonexistent/a.xml: expected a folder '/nonexistent'");
  EXPECT_EQ(ran.out, "");
}

TEST_F(CliTest, SuppressionsMustBeReadableAndReasoned) {
  const std::string path = folder_ + "/accepted.txt";
  std::ofstream(path) << "race tile.cuh:7\n";
  const Ran ran = check_with(kHost, "none", {"--cases", "1", "--suppress", path});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_SAYS(ran.err, ":1: expected 'kind file:line reason', got 'race tile.cuh:7'");
  EXPECT_EQ(check_with(kHost, "none", {"--cases", "1", "--suppress", folder_ + "/none"}).status, 2);
  std::ofstream(path) << "rice tile.cuh:7 the lanes are converged\n";
  EXPECT_SAYS(check_with(kHost, "none", {"--cases", "1", "--suppress", path}).err, "got 'rice'");
  std::ofstream(path) << "race tile.cuh:7 the lanes are converged\n";
  EXPECT_EQ(check_with(kHost, "none", {"--cases", "1", "--suppress", path}).status, 0);
}

TEST_F(CliTest, ChecksAreChosenByNameAndLeaksFailWhereNamed) {
  const auto status = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all = {"--cases", "3", "--minimize-attempts", "0"};
    all.insert(all.end(), options.begin(), options.end());
    return check_with(kMisbehaving, "leaks", all).status;
  };
  EXPECT_EQ(status({}), 0);
  EXPECT_EQ(status({"--checks", "memory,leak"}), 1);
  EXPECT_EQ(status({"--checks", "memory"}), 0);
  EXPECT_EQ(status({"--checks", "memory,leaks"}), 2);
  EXPECT_EQ(check_with(kHost, "none", {"--cases", "3", "--checks", "leak"}).status, 0);
}

TEST_F(CliTest, HistoriesTakeNoOptionsOfKernels) {
  EXPECT_EQ(run_kverify({"check", "--level", "engine", "--exhaustive"}).status, 2);
  EXPECT_EQ(run_kverify({"check", "--level", "engine", "--suppress", "x"}).status, 2);
}

TEST_F(CliTest, ACorpusThatIsNoneIsTwo) {
  const Ran ran = run_kverify({"check", "--corpus", folder_ + "/nowhere", "--cases", "1"});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_SAYS(ran.err, "expected a folder with seeds/ or regression/");
}

TEST_F(CliTest, ResultsReplaceNeitherInputsNorDevices) {
  const std::string path = stored("kept.json", small_case());
  EXPECT_EQ(run_kverify({"replay", "--json", path, path, "--plugin", kHost}).status, 2);
  EXPECT_TRUE(load_case(path).ok());
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(run_kverify({"replay", path, "--plugin", kHost, "--json", pipe}).status, 2);
  EXPECT_TRUE(fs::is_fifo(pipe));
  const std::string link = folder_ + "/link.json";
  std::ofstream(folder_ + "/real.json") << "old";
  fs::create_symlink(folder_ + "/real.json", link);
  EXPECT_EQ(run_kverify({"replay", path, "--plugin", kHost, "--json", link}).status, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_GT(fs::file_size(folder_ + "/real.json"), 100u);
}

TEST_F(CliTest, BadCasesAreTwo) {
  const Ran missing = run_kverify({"replay", folder_ + "/missing.json"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_SAYS(missing.err, "missing.json");
  std::ofstream(folder_ + "/broken.json") << "{\"version\": 1, ";
  EXPECT_EQ(run_kverify({"replay", folder_ + "/broken.json"}).status, 2);
  EXPECT_EQ(run_kverify({"show", folder_ + "/broken.json"}).status, 2);
  Case c = small_case();
  c.data.digest = 1;
  const Ran digest = run_kverify({"replay", stored("digest.json", c), "--plugin", kHost});
  EXPECT_EQ(digest.status, 2);
  EXPECT_SAYS(digest.err, "data.digest");
}

TEST_F(CliTest, BadPluginsAreTwo) {
  for (const std::string& plugin :
       {kPlugins + "libno_plugin.so", kPlugins + "libstatic_runtime_plugin.so",
        kPlugins + "libother_runtime_plugin.so", folder_ + "/missing.so"}) {
    const Ran ran = check_with(plugin, "none", {"--cases", "1"});
    EXPECT_EQ(ran.status, 2) << plugin << ran.out << ran.err;
    EXPECT_SAYS(ran.err, "kverify: error: ");
  }
  for (const char* fault : {"abi", "null", "no_function", "garbage_name", "load_segfault"}) {
    const Ran ran = check_with(kMisbehaving, fault, {"--cases", "1"});
    EXPECT_EQ(ran.status, 2) << fault << ran.out << ran.err;
  }
}

TEST_F(CliTest, ABrokenCorpusIsTwo) {
  fs::create_directories(folder_ + "/seeds");
  std::ofstream(folder_ + "/seeds/broken.json") << "no JSON";
  const Ran ran = check_with(kHost, "none", {"--cases", "1"});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_SAYS(ran.err, "broken.json");
}

// ---------------------------------------------------------------- 3 to 7, 130

TEST_F(CliTest, AMissingDeviceIsThree) {
  const std::string path = stored("small.json", small_case());
  const Ran ran = run_kverify({"replay", path, "--plugin", kHost},
                              {.environment = {{"KVERIFY_SIMT", "/nonexistent.so"}}});
  EXPECT_EQ(ran.status, 3) << ran.out << ran.err;
  EXPECT_SAYS(ran.err, "/nonexistent.so");
  const Ran cuda = run_kverify({"replay", path, "--plugin", kHost, "--device", "cuda"},
                               {.environment = {{"KVERIFY_CUDART", "/nonexistent.so"}}});
  EXPECT_EQ(cuda.status, 3) << cuda.out << cuda.err;
}

TEST_F(CliTest, AFindingThatDoesNotComeAgainIsFour) {
  const Ran ran = replay_with("flaky");
  EXPECT_EQ(ran.status, 4) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "nondeterministic");
}

TEST_F(CliTest, NothingJudgedIsFive) {
  const Ran ran = check_with(kHost, "none", {"--cases", "0"});
  EXPECT_EQ(ran.status, 5) << ran.out << ran.err;
}

TEST_F(CliTest, NothingSupportedIsSeven) {
  Case c = small_case();
  c.exec.split_slots = 4;
  const Ran ran = run_kverify({"replay", stored("split.json", c), "--plugin", kHost});
  EXPECT_EQ(ran.status, 7) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "no splits");
}

TEST_F(CliTest, AnInterruptStillReports) {
  const Ran ran = run_kverify({"check", "--plugin", kHost, "--corpus", folder_, "--minutes", "5"},
                              {.folder = folder_, .interrupt_after_seconds = 1.5});
  EXPECT_EQ(ran.status, 130) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "interrupted");
  EXPECT_SAYS(ran.out, "cases:");
}

// ---------------------------------------------------------------- same bytes

TEST_F(CliTest, JsonIsTheSameTwiceAndOnLesserProcessors) {
  const auto json = [&](const char* name, const char* cpu) {
    const std::string path = folder_ + "/" + name;
    const Ran ran =
        run_kverify({"check", "--plugin", kMisbehaving, "--corpus", folder_, "--out", "found",
                     "--cases", "30", "--seed", "3", "--json", path},
                    {.environment = {{"KVERIFY_TEST_FAULT", "wrong_lse"}, {"KVERIFY_CPU", cpu}},
                     .folder = folder_});
    EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const std::string first = json("a.json", "");
  EXPECT_GT(nlohmann::json::parse(first).at("failures").size(), 0u);
  EXPECT_EQ(first, json("b.json", ""));
  EXPECT_EQ(first, json("c.json", "portable"));
  EXPECT_EQ(first, json("d.json", "avx2"));
}

TEST_F(CliTest, AProcessorThatHasNoNameIsRefused) {
  const Ran ran = run_kverify({"kernels", "--plugin", kHost},
                              {.environment = {{"KVERIFY_CPU", "avx3"}}, .folder = folder_});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_SAYS(ran.err, "KVERIFY_CPU is \"avx3\", expected portable, avx2, avx512 or nothing");
}

TEST_F(CliTest, JsonOnStandardOutputIsOnlyJson) {
  const Ran ran = replay_with("none", {"--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("exit_code"), 0);
}

}  // namespace
}  // namespace kv::cli
