#include "harness/plugin/worker_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "harness/plugin/status_page.h"

namespace kv {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<WorkerProcess> start(const std::string& behaviour,
                                     std::chrono::milliseconds silence_max = 10s) {
  auto worker = WorkerProcess::start({.executable = KV_BUILD_DIR "/bin/worker_fixture",
                                      .arguments = {behaviour},
                                      .silence_max = silence_max,
                                      .memory_bytes_max = uint64_t{200} << 20});
  EXPECT_TRUE(worker.ok()) << worker.error().message;
  return std::move(worker).value();
}

/// Sends one request and returns how the process ended, ignoring frames.
Ending ending_of(WorkerProcess& worker) {
  worker.submit(FrameType::kRun, {});
  for (;;) {
    const WorkerEvent event = worker.receive();
    if (const auto* ending = std::get_if<Ending>(&event)) return *ending;
  }
}

TEST(WorkerProcess, AnswersManyRequestsInOrder) {
  auto worker = start("well");
  const std::vector<std::byte> large(3 << 20, std::byte{42});
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kHello);
  for (int i = 0; i < 3; ++i) worker->submit(FrameType::kRun, large);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::get<Frame>(worker->receive()).payload, large);
    EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kEnd);
  }
  EXPECT_FALSE(worker->receive_within(30ms).has_value());
}

TEST(WorkerProcess, ReportsTheSignalAndThePhase) {
  const Ending ending = ending_of(*start("segfault"));
  EXPECT_EQ(ending.cause, Ending::Cause::kSignalled);
  EXPECT_EQ(ending.code, SIGSEGV);
  EXPECT_EQ(ending.op_index, 5u);
  EXPECT_EQ(ending.message, "was killed by SIGSEGV in attend");
}

TEST(WorkerProcess, ReportsAnExit) {
  const Ending ending = ending_of(*start("exit"));
  EXPECT_EQ(ending.cause, Ending::Cause::kExited);
  EXPECT_EQ(ending.message, "exited with status 7 in attend");
}

TEST(WorkerProcess, KillsWhatIsSilent) {
  EXPECT_EQ(ending_of(*start("hang", 200ms)).cause, Ending::Cause::kHung);
}

TEST(WorkerProcess, LetsProgressGoOnBeyondTheLimit) {
  auto worker = start("slow", 300ms);
  worker->submit(FrameType::kRun, {});
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kHello);
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kOperation);
}

/// Processes that take a processor from whoever shares it, as long as this lives.
class Burners {
 public:
  explicit Burners(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0)
        for (std::atomic<int> x = 0;; ++x) {
        }
      pids_.push_back(pid);
    }
  }
  ~Burners() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> pids_;
};

// Fails when time that a worker waits for its processor counts as silence.
TEST(WorkerProcess, ABusyMachineIsNoHang) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Burners burners(4);
  auto worker = start("busy", 1500ms);  // 600 ms of its own, 3 s of wall clock
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kHello);
  if (std::ifstream("/proc/self/schedstat").fail()) GTEST_SKIP() << "this system does not say";
  worker->submit(FrameType::kRun, {});
  const WorkerEvent event = worker->receive();
  ASSERT_TRUE(std::holds_alternative<Frame>(event));
  EXPECT_EQ(std::get<Frame>(event).type, FrameType::kOperation);
}

TEST(WorkerProcess, IdlenessIsNoHang) {
  auto worker = start("well", 100ms);
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kHello);
  EXPECT_FALSE(worker->receive_within(400ms).has_value());
  worker->submit(FrameType::kRun, {});
  EXPECT_EQ(std::get<Frame>(worker->receive()).type, FrameType::kOperation);
}

TEST(WorkerProcess, KillsWhatEatsMemory) {
  EXPECT_EQ(ending_of(*start("memory")).cause, Ending::Cause::kMemory);
}

TEST(WorkerProcess, KillsWhatDamagesItsChannel) {
  EXPECT_EQ(ending_of(*start("garbage")).cause, Ending::Cause::kMalformed);
  EXPECT_EQ(ending_of(*start("close")).cause, Ending::Cause::kMalformed);
  EXPECT_EQ(ending_of(*start("huge")).cause, Ending::Cause::kMalformed);
}

TEST(WorkerProcess, EndsThoughAGrandchildHoldsTheChannel) {
  EXPECT_EQ(ending_of(*start("child")).cause, Ending::Cause::kExited);
}

TEST(WorkerProcess, KeepsTheEndOfTheOutputPrintable) {
  auto worker = start("chatter");
  worker->submit(FrameType::kRun, {});
  for (int i = 0; i < 3; ++i) worker->receive();
  worker->stop();
  const Ending ending = std::get<Ending>(worker->receive());
  EXPECT_EQ(ending.cause, Ending::Cause::kStopped);
  EXPECT_LE(ending.output.size(), size_t{8} << 10);
  EXPECT_NE(ending.output.find("line 19999 ??"), std::string::npos);
}

TEST(WorkerProcess, SaysWhatCannotBeStarted) {
  const auto worker = WorkerProcess::start({.executable = "/nonexistent/kverify", .arguments = {}});
  ASSERT_FALSE(worker.ok());
  EXPECT_EQ(worker.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(worker.error().message.find("/nonexistent/kverify"), std::string::npos);
}

}  // namespace
}  // namespace kv
