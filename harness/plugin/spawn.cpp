#include "harness/plugin/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

extern char** environ;

namespace kv {
namespace {

Error failed(const char* what) {
  return environment_error(std::string("cannot start a worker process: ") + what + ": " +
                           std::strerror(errno));
}

/// What posix_spawn needs; frees itself.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  /// `from` must lie above the descriptors that a worker finds open, or be replaced in order.
  void connect(int from, int to) { posix_spawn_file_actions_adddup2(&actions, from, to); }
};

/// A copy of the descriptor above those that the child's dup2 calls overwrite.
Descriptor lifted(int fd) { return Descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 16)); }

Result<StatusPage*> map_status_page(int memory) {
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (ftruncate(memory, page_bytes) != 0) return failed("ftruncate");
  void* mapped = mmap(nullptr, sizeof(StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) return failed("mmap");
  return new (mapped) StatusPage;
}

Result<pid_t> spawn(const WorkerSpec& spec, SpawnPlan& plan) {
  std::vector<char*> arguments;
  std::string name = "kverify";
  arguments.push_back(name.data());
  std::vector<std::string> copies = spec.arguments;
  for (std::string& argument : copies) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  errno = posix_spawn(&pid, spec.executable.c_str(), &plan.actions, &plan.attributes,
                      arguments.data(), environ);
  if (errno != 0) return failed(spec.executable.c_str());
  return pid;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = other.release();
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}
int Descriptor::release() { return std::exchange(fd_, -1); }

Result<Child> spawn_child(const WorkerSpec& spec) {
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return failed("socketpair");
  Child child;
  child.socket = Descriptor(sockets[0]);
  const Descriptor far_socket_low(sockets[1]);
  if (pipe2(pipes, O_CLOEXEC) != 0) return failed("pipe2");
  child.output = Descriptor(pipes[0]);
  const Descriptor far_output_low(pipes[1]);
  const Descriptor memory_low(memfd_create("kverify-status", MFD_CLOEXEC));
  if (memory_low.get() < 0) return failed("memfd_create");
  KV_ASSIGN_OR_RETURN(child.status, map_status_page(memory_low.get()));

  const Descriptor far_socket = lifted(far_socket_low.get());
  const Descriptor far_output = lifted(far_output_low.get());
  const Descriptor memory = lifted(memory_low.get());
  SpawnPlan plan;
  posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  plan.connect(far_output.get(), STDOUT_FILENO);
  plan.connect(far_output.get(), STDERR_FILENO);
  plan.connect(far_socket.get(), kWorkerSocket);
  plan.connect(memory.get(), kWorkerStatusPage);
  auto pid = spawn(spec, plan);
  if (!pid.ok()) {
    munmap(child.status, sizeof(StatusPage));
    return pid.error();
  }
  child.pid = *pid;
  const rlimit no_core = {0, 0};
  prlimit(child.pid, RLIMIT_CORE, &no_core, nullptr);
  return child;
}

uint64_t resident_bytes(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/statm";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  unsigned long total = 0, resident = 0;
  const int fields = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  return fields == 2 ? uint64_t{resident} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::chrono::nanoseconds time_without_processor(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/schedstat";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  unsigned long long ran = 0, waited = 0;
  const int fields = std::fscanf(file, "%llu %llu", &ran, &waited);
  std::fclose(file);
  return std::chrono::nanoseconds(fields == 2 ? waited : 0);
}

}  // namespace kv
