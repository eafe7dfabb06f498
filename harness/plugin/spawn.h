// Purpose: starts a child process with the descriptors of a worker (private to worker_process.cpp).
// Contract: the child gets /dev/null as standard input, one pipe for output and error, the socket
// and the status page, nothing else of the parent's; its own process group; no core dumps.
#pragma once

#include <sys/types.h>

#include "harness/plugin/status_page.h"
#include "harness/plugin/worker_process.h"

namespace kv {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

struct Child {
  pid_t pid = -1;
  Descriptor socket, output;     // the parent's ends
  StatusPage* status = nullptr;  // mapped; the owner unmaps it
};

Result<Child> spawn_child(const WorkerSpec& spec);

/// Resident memory of a process in bytes; 0 when it is gone.
uint64_t resident_bytes(pid_t pid);

/// How long its main thread was ready to run and had no processor; 0 where the system does not say.
std::chrono::nanoseconds time_without_processor(pid_t pid);

}  // namespace kv
