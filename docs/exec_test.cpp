// `kverify exec` on programs of their own, and the page that shows it: exec.md must hold the source
// as it is and the output as it comes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;

const std::string kBin = KV_BUILD_DIR "/bin/";
const std::string kFaulty = kBin + "scale_rows_faulty", kFixed = kBin + "scale_rows_fixed";

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Without what differs from machine to machine: where the tree lies, and what line of PTX the
/// compiler made.
std::string plain(std::string text) {
  const std::string tree = KV_SOURCE_DIR "/";
  for (size_t at; (at = text.find(tree)) != text.npos;) text.erase(at, tree.size());
  return std::regex_replace(text, std::regex("PTX line [0-9]+"), "PTX line N");
}

class Exec : public testing::Test {
 protected:
  Exec() : folder_(testing::TempDir() + "/exec_test-" + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~Exec() override { fs::remove_all(folder_); }
  std::string stored(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST_F(Exec, ThePageIsTrue) {
  const std::string page = plain(read(KV_SOURCE_DIR "/docs/exec.md"));
  EXPECT_SAYS(page, "```\n" + read(KV_SOURCE_DIR "/docs/scale_rows.cu") + "```");
  const Ran ran = run_kverify({"exec", "--", kFaulty});
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(page, "```\n$ kverify exec -- ./scale_rows\n" + ran.out + plain(ran.err) + "```");
}

TEST_F(Exec, TheFaultIsNamedWithItsOrigin) {
  const Ran ran = run_kverify({"exec", "--", kFaulty});
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(ran.err, "undefined data: ");
  EXPECT_SAYS(ran.err, "docs/scale_rows.cu:10");
  EXPECT_SAYS(ran.err, "it was loaded at");
}

TEST_F(Exec, TheFixedTwinIsSilent) {
  const Ran ran = run_kverify({"exec", "--", kFixed});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "first row: 0.5\n");
  EXPECT_SAYS(ran.err, "kverify: 0 findings in 1 launch on the CPU device");
}

TEST_F(Exec, ASwitchedOffCheckFindsNothing) {
  EXPECT_EQ(run_kverify({"exec", "--checks", "memory,race", "--", kFaulty}).status, 0);
  const Ran unknown = run_kverify({"exec", "--checks", "everything", "--", kFaulty});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_SAYS(unknown.err, "got 'everything'");
}

// The reports come from the program's own process, which may write there what it likes.
TEST_F(Exec, AForeignReportIsNoCrash) {
  const std::string script =
      R"(echo '{"launches": "x", "findings": [1, {"kind": 7, "source_line": -1}]}' )"
      R"(> "$KV_SIMT_REPORT_JSON.foreign")";
  const Ran ran = run_kverify({"exec", "--json", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_SAYS(ran.err, "2 findings in 0 launches");
}

TEST_F(Exec, SuppressionsNeedAReasonAndAreCounted) {
  const std::string good = stored(
      "good", "# accepted\nundefined-data  docs/scale_rows.cu:10  only the first row is used\n");
  const Ran ran = run_kverify({"exec", "--suppress", good, "--json", "--", kFaulty});
  EXPECT_EQ(ran.status, 0);
  EXPECT_SAYS(ran.err, "suppressed undefined-data at docs/scale_rows.cu:10");
  EXPECT_SAYS(ran.err, "(only the first row is used)");
  const auto json = nlohmann::json::parse(ran.out.substr(ran.out.find('{')));
  EXPECT_EQ(json["findings"].size(), 0u);
  EXPECT_GE(json["suppressed"], 1);
  const std::string other = stored("other", "undefined-data rows.cu:10 another file\n");
  EXPECT_EQ(run_kverify({"exec", "--suppress", other, "--", kFaulty}).status, 1);
  const Ran bad =
      run_kverify({"exec", "--suppress", stored("bad", "race scale_rows.cu:10\n"), "--", kFaulty});
  EXPECT_EQ(bad.status, 2);
  EXPECT_SAYS(bad.err, "bad:1: expected 'kind file:line reason'");
}

TEST_F(Exec, ProfilesAndLinesOnRequest) {
  const std::string profile = folder_ + "/profile.json", lcov = folder_ + "/lcov";
  EXPECT_EQ(run_kverify({"exec", "--profile", profile, "--lcov", lcov, "--", kFixed}).status, 0);
  const auto json = nlohmann::json::parse(read(profile));
  EXPECT_EQ(json["sum"]["warps"], 12) << "6 rows of 64 threads";
  // 6 rows of 40 floats and 6 factors are read, the 6 rows written.
  EXPECT_EQ(json["sum"]["global_bytes_read_distinct"], 6 * 40 * 4 + 6 * 4);
  EXPECT_EQ(json["sum"]["global_bytes_written_distinct"], 6 * 40 * 4);
  EXPECT_SAYS(read(lcov), "docs/scale_rows.cu\n");
  EXPECT_SAYS(read(lcov), "DA:10,12\n");
}

/// It is linked to libcudart.so.12; what CUDA 12's own compiler makes of a program is tried by
/// `ci/run peers`.
TEST_F(Exec, AProgramOfCuda12Runs) {
  const Ran ran = run_kverify({"exec", "--", kBin + "scale_rows_cuda12"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(ran.err, "undefined data: ");
  EXPECT_SAYS(ran.err, "docs/scale_rows.cu:10");
}

/// Fails when a program finds another cuBLAS than the drop-in, which alone runs on the device.
TEST_F(Exec, AProgramWithCublasRunsByItselfAndFromAScript) {
  const std::string program = kBin + "multiply";
  if (!fs::exists(program)) GTEST_SKIP() << "the drop-in was not built: no cuBLAS headers here";
  const Ran good = run_kverify({"exec", "--", program});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.out, "8\n");
  EXPECT_SAYS(good.err, "kverify: 0 findings in 1 launch ");
  const Ran bad = run_kverify({"exec", "--", "/bin/sh", "-c", program + " faulty"});
  EXPECT_EQ(bad.status, 1) << bad.err;
  EXPECT_SAYS(bad.err, "undefined data: ");
}

TEST_F(Exec, TheProgramsOwnStatusIsPassedOn) {
  EXPECT_EQ(run_kverify({"exec", "--", "sh", "-c", kFixed + "; exit 9"}).status, 9);
  const Ran killed = run_kverify({"exec", "--", "sh", "-c", kFaulty + "; kill -9 $$"});
  EXPECT_EQ(killed.status, 1) << "findings come first";
}

Ran how_it_ends(const std::string& how, std::vector<std::string> options = {}) {
  options.insert(options.begin(), "exec");
  options.insert(options.end(), {"--", kBin + "how_it_ends", how});
  return run_kverify(options);
}

/// Fails when launches are counted, or findings told, only by a process that ends as it should.
TEST_F(Exec, AnEndWithoutExitHandlersLosesNothing) {
  const Ran left = how_it_ends("_exit");
  EXPECT_EQ(left.status, 7);
  EXPECT_SAYS(left.err, "kverify: 0 findings in 1 launch ");
  EXPECT_SAYS(left.err, "the program ended with status 7\n");
  EXPECT_SAYS(left.err,
              "1 process ended by a signal, by _exit or by exec, so leaks were not looked for\n");
  const Ran found = how_it_ends("overrun");
  EXPECT_EQ(found.status, 1);
  EXPECT_SAYS(found.err, "out of bounds: ");
  EXPECT_SAYS(found.err, "kverify: 1 finding in 1 launch ");
  const Ran became = how_it_ends("exec");
  EXPECT_EQ(became.status, 1) << "another program in its place has taken its report";
  EXPECT_SAYS(became.err, "out of bounds: ");
  const Ran twin = how_it_ends("become");
  EXPECT_EQ(twin.status, 0) << twin.err;
  EXPECT_SAYS(twin.err, "kverify: 0 findings in 1 launch ");
  const Ran died = how_it_ends("signal");
  EXPECT_EQ(died.status, 139);
  EXPECT_SAYS(died.err, "kverify: 0 findings in 1 launch ");
  EXPECT_SAYS(died.err, "the program was ended by signal 11 (Segmentation fault)\n");
  const Ran unawaited = how_it_ends("unawaited");
  EXPECT_EQ(unawaited.status, 5) << "nothing was checked";
  EXPECT_SAYS(unawaited.err, "of 1 launch only 0 had been executed by then\n");
  const Ran whole = how_it_ends("return");
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(whole.err.find("_exit"), std::string::npos) << whole.err;
}

/// Fails when the report of the end goes elsewhere than that of the launches: what is found only at
/// the end is lost then, and a file of that other name lies in the program's folder.
TEST_F(Exec, WhatTheEndFindsIsInTheSameReport) {
  const Ran ran = run_kverify({"exec", "--", kBin + "how_it_ends", "leak"}, {.folder = folder_});
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(ran.err, "undefined data: ");
  EXPECT_SAYS(ran.err, "leak: ");
  EXPECT_SAYS(ran.err, "in 2 launches ");
  EXPECT_TRUE(fs::is_empty(folder_));
}

/// Fails when a child that was forked tells the parent's launches and allocations as its own.
TEST_F(Exec, AChildAnswersForItselfOnly) {
  const Ran ran = how_it_ends("fork");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_SAYS(ran.err, "kverify: 0 findings in 1 launch ");
  EXPECT_EQ(ran.err.find("leak"), std::string::npos) << ran.err;
}

/// Fails when what a shell has started lives on after the program was killed.
TEST_F(Exec, TheTimeLimitEndsWhatTheProgramStarted) {
  const std::string pid = folder_ + "/pid";
  const Ran ran = run_kverify({"exec", "--time-limit", "1", "--", "/bin/sh", "-c",
                               "sleep 1000 & echo $! > " + pid + "; " + kBin + "how_it_ends host"});
  EXPECT_EQ(ran.status, 6) << ran.err;
  const int left = std::atoi(read(pid).c_str());
  ASSERT_GT(left, 0);
  EXPECT_NE(kill(left, 0), 0) << "process " << left << " lives";
}

/// Fails when a report that cannot be read is no report.
TEST_F(Exec, AReportThatIsNoneIsSaid) {
  const std::string script = R"(echo '{"launches": 1, "find' > "$KV_SIMT_REPORT_JSON.1")";
  const Ran ran = run_kverify({"exec", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(ran.status, 3) << ran.err;
  EXPECT_SAYS(ran.err, "expected a report of the CPU device, got no JSON");
}

/// Fails when a wait that cannot end goes on until the budget of instructions is spent, or when the
/// report leaves out a warp.
TEST_F(Exec, ASpinIsAFindingWithEveryWarp) {
  const Ran ran = how_it_ends("spin");
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(ran.err,
              "waits for a value that nobody changes; block 0 warp 0 waits at barrier 0, ");
  EXPECT_SAYS(ran.err, "docs/how_it_ends.cu:20, warp 1 to 2 is at ");
}

/// Fails when a kernel that is busy for ever, or a program that is, has no end, or when the code
/// does not say that it was time.
TEST_F(Exec, TheTimeLimitEndsKernelsAndPrograms) {
  const Ran kernel = how_it_ends("count", {"--time-limit", "1"});
  EXPECT_EQ(kernel.status, 6);
  EXPECT_SAYS(kernel.err,
              "hang: the time limit is over; block 0 and 1 more like it: warp 0 is at ");
  EXPECT_SAYS(kernel.err, "kverify: the time limit of 1 s is over (--time-limit)\n");
  EXPECT_SAYS(kernel.err, "the program ended with status 8\n");
  const Ran host = how_it_ends("host", {"--time-limit", "1"});
  EXPECT_EQ(host.status, 6);
  EXPECT_SAYS(host.err, "the program did not end, and was killed\n");
}

/// Fails when the device aborts where it finds no room for its addresses.
TEST_F(Exec, AMachineWithoutRoomIsOneLine) {
  const Ran ran = run_kverify({"exec", "--", "/bin/sh", "-c", "ulimit -v 4000000; exec " + kFixed});
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_SAYS(ran.err, "could not reserve its address range");
}

/// Fails when a suppression that nothing needs any more stays unnoticed.
TEST_F(Exec, UnusedSuppressionsAreNamed) {
  const std::string list =
      stored("list", "undefined-data docs/scale_rows.cu:10 known\nrace old.cu:3 fixed long ago\n");
  const Ran ran = run_kverify({"exec", "--suppress", list, "--json", "--", kFaulty});
  EXPECT_EQ(ran.status, 0);
  EXPECT_SAYS(ran.err, "note: nothing was suppressed by race at old.cu:3 (fixed long ago)\n");
  const auto json = nlohmann::json::parse(ran.out.substr(ran.out.find('{')));
  ASSERT_EQ(json["suppressions_unused"].size(), 1u);
  EXPECT_EQ(json["suppressions_unused"][0]["file"], "old.cu");
}

TEST_F(Exec, TwoOptionsCannotWriteOneFile) {
  const std::string file = folder_ + "/out";
  const Ran ran = run_kverify({"exec", "--profile", file, "--lcov",
                               folder_ + "/../" + fs::path(folder_).filename().string() + "/out",
                               "--", kFixed});
  EXPECT_EQ(ran.status, 2);
  EXPECT_SAYS(ran.err, "--lcov: expected another file than that of --profile, got '");
}

/// Fails when a program runs for hours before it is said that nothing can be written.
TEST_F(Exec, AFolderThatIsNotThereIsSaidAtOnce) {
  for (const char* option : {"--profile", "--lcov", "--json"}) {
    const Ran ran = run_kverify({"exec", option, folder_ + "/none/file", "--", kFixed});
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.out, "") << "the program ran";
    EXPECT_SAYS(ran.err, std::string(option) + " " + folder_ + "/none/file: expected a folder");
  }
}

/// Fails when kernels that nobody could run are called a fault of the program, or nothing is said.
TEST_F(Exec, ADamagedFatBinaryIsNoFindingOfTheProgram) {
  std::string bytes = read(kFixed);
  const std::string magic = "\x50\xed\x55\xba";
  size_t last = 0;
  for (size_t at = 0; (at = bytes.find(magic, at)) != bytes.npos; ++at) last = at;
  ASSERT_GT(last, 0u);
  bytes[last] = 0;
  const std::string damaged = stored("damaged", bytes);
  fs::permissions(damaged, fs::perms::owner_all);
  const Ran ran = run_kverify({"exec", "--", damaged});
  EXPECT_EQ(ran.status, 7) << ran.err;
  EXPECT_SAYS(ran.err, "unsupported: fat binary at byte 0: expected the magic 0xba55ed50, got ");
  EXPECT_SAYS(ran.err, "  in kernel scale_rows(float*, float const*, int, int)\n");
}

TEST_F(Exec, ErrorsSayWhatToDo) {
  const std::string plugins = KV_BUILD_DIR "/lib/testdata/";
  const Ran runtime = run_kverify({"exec", "--", plugins + "libstatic_runtime_plugin.so"});
  EXPECT_EQ(runtime.status, 2);
  EXPECT_SAYS(runtime.err, "rebuild with -cudart shared");
  const Ran other = run_kverify({"exec", "--", plugins + "libother_runtime_plugin.so"});
  EXPECT_EQ(other.status, 2);
  EXPECT_SAYS(other.err, "is linked to libcudart.so.11");
  const Ran cubin = run_kverify({"exec", "--", kBin + "scale_rows_cubin"});
  EXPECT_EQ(cubin.status, 7);
  EXPECT_SAYS(cubin.err, "Recompile with -gencode arch=compute_80,code=compute_80");
  const Ran none = run_kverify({"exec", "--", "true"});
  EXPECT_EQ(none.status, 5);
  EXPECT_SAYS(none.err, "launched nothing, so nothing was checked");
  EXPECT_EQ(run_kverify({"exec", "--", "./no_such_program"}).status, 2);
  EXPECT_EQ(run_kverify({"exec", "--", "no_such_program"}).status, 2);
  EXPECT_EQ(run_kverify({"exec"}).status, 2);
}

}  // namespace
}  // namespace kv::cli
