// A whole process: what the environment sets, and what is said at the end.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/simt/programs_test/fault_lines.h"

namespace kv::simt::programs {
namespace {

struct Outcome {
  int status = -1;
  std::string said;  // standard output and error
};

/// Runs the program with the given variables and argument through the shell.
Outcome run(const std::string& environment, const std::string& argument = "") {
  const std::string command =
      "env " + environment + " " + KV_BUILD_DIR "/bin/simt_quiet_program " + argument + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return outcome;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe)) outcome.said += buffer;
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Exit, SaysNothingOfItsOwn) {
  const Outcome outcome = run("-u KV_SIMT_REPORT");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.said, "cudaSuccess, sm_80\n");
}

TEST(Exit, TheModelCanBeChosen) { EXPECT_EQ(run("KV_SIMT_MODEL=89").said, "cudaSuccess, sm_89\n"); }

TEST(Exit, ReportOfACleanProgram) {
  const Outcome outcome = run("KV_SIMT_REPORT=- KV_SIMT_SEED=5");
  EXPECT_EQ(outcome.said,
            "cudaSuccess, sm_80\n"
            "kverify: 0 findings, 1 launch on the CPU device (sm_80, schedule seed 5)\n");
}

TEST(Exit, ReportNamesTheFault) {
  const std::string source = KV_SOURCE_DIR "/harness/simt/programs_test/quiet_program.cu";
  const FaultLines fault = find_fault_lines(source, "quiet_program");
  ASSERT_EQ(fault.lines.size(), 1u);
  const Outcome outcome = run("KV_SIMT_REPORT=-", "faulty");
  EXPECT_EQ(outcome.status, 0) << "the program's own";
  EXPECT_NE(outcome.said.find("cudaErrorIllegalAddress"), std::string::npos) << outcome.said;
  EXPECT_NE(outcome.said.find("out of bounds: "), std::string::npos) << outcome.said;
  const std::string place = "quiet_program.cu:" + std::to_string(*fault.lines.begin());
  EXPECT_NE(outcome.said.find(place), std::string::npos) << outcome.said;
}

TEST(Exit, WorkThatNobodyWaitedForIsCheckedAndLeaksAreReported) {
  const Outcome outcome = run("KV_SIMT_REPORT=-", "correct unfinished");
  EXPECT_NE(outcome.said.find("1 finding, 1 launch"), std::string::npos) << outcome.said;
  EXPECT_NE(outcome.said.find("leak: device allocation 1 of 128 bytes"), std::string::npos)
      << outcome.said;
  const Outcome without = run("KV_SIMT_REPORT=- KV_SIMT_CHECKS=memory,race", "correct unfinished");
  EXPECT_NE(without.said.find("0 findings"), std::string::npos) << without.said;
}

TEST(Exit, TheReportCanGoToAFile) {
  const std::string path = testing::TempDir() + "kv_simt_report.txt";
  EXPECT_EQ(run("KV_SIMT_REPORT=" + path).said, "cudaSuccess, sm_80\n");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("0 findings"), std::string::npos) << text.str();
  std::remove(path.c_str());
  const Outcome outcome = run("KV_SIMT_REPORT=/no/such/folder/report");
  EXPECT_NE(outcome.said.find("cannot write"), std::string::npos) << outcome.said;
}

TEST(Exit, ABadValueEndsTheProgramBeforeItStarts) {
  const Outcome outcome = run("KV_SIMT_MODEL=7x");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.said,
            "kverify: environment variable KV_SIMT_MODEL: expected 80, 89 or 90, got \"7x\"\n");
}

}  // namespace
}  // namespace kv::simt::programs
