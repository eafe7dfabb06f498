#include "harness/cli/processor_time.h"

#include <sys/resource.h>
#include <time.h>

#include <filesystem>
#include <fstream>

namespace kv::cli {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

double used_by(int who) {
  rusage usage = {};
  return getrusage(who, &usage) == 0 ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : 0;
}

double used_by_process(pid_t process) {
  clockid_t clock = 0;
  timespec t = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

double processor_seconds() {
  double sum = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) sum += used_by_process(child);
  }
  return sum;
}

}  // namespace kv::cli
