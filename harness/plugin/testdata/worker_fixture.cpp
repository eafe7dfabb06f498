// A worker process for worker_process_test: argv[1] says how it behaves once it has been asked.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "harness/plugin/frame.h"
#include "harness/plugin/status_page.h"
#include "harness/plugin/worker_process.h"

namespace {

void allocate_for_ever() {
  for (;;) {
    char* block = static_cast<char*>(std::malloc(16 << 20));
    std::memset(block, 1, 16 << 20);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void behave(const std::string& how, kv::StatusPage& status) {
  using namespace std::chrono_literals;
  if (how == "segfault") raise(SIGSEGV);
  if (how == "exit") std::exit(7);
  if (how == "hang")
    for (;;) pause();
  if (how == "memory") allocate_for_ever();
  if (how == "close") {
    close(kv::kWorkerSocket);
    for (;;) pause();
  }
  if (how == "garbage") {
    (void)!write(kv::kWorkerSocket, "garbage garbage garbage", 23);
    pause();
  }
  if (how == "huge") {
    const uint64_t header[2] = {0x300000000ull | 0x3146564b, ~0ull};
    (void)!write(kv::kWorkerSocket, header, sizeof header);
    pause();
  }
  if (how == "busy") {  // 600 ms of processor time without a word
    while (std::clock() < 6 * CLOCKS_PER_SEC / 10) {
    }
  }
  if (how == "slow")  // longer than the limit, but always getting on
    for (int i = 0; i < 20; ++i) {
      status.enter(kv::Phase::kAttend);
      std::this_thread::sleep_for(50ms);
    }
  if (how == "child") {
    if (fork() == 0)
      for (;;) pause();
    std::exit(3);
  }
  if (how == "chatter")
    for (int i = 0; i < 20000; ++i) std::printf("line %d \x01\xff\n", i);
  std::fflush(stdout);
}

}  // namespace

int main(int, char** argv) {
  void* page = mmap(nullptr, sizeof(kv::StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                    kv::kWorkerStatusPage, 0);
  auto& status = *static_cast<kv::StatusPage*>(page);
  kv::write_frame(kv::kWorkerSocket, kv::FrameType::kHello, {});
  while (const auto frame = kv::read_frame(kv::kWorkerSocket)) {
    status.enter(kv::Phase::kAttend);
    status.op_index = 5;
    behave(argv[1], status);
    kv::write_frame(kv::kWorkerSocket, kv::FrameType::kOperation, frame->payload);
    kv::write_frame(kv::kWorkerSocket, kv::FrameType::kEnd, {});
    status.enter(kv::Phase::kIdle);
  }
}
