// Purpose: a process that may crash, hang, exit or eat memory without harm to kverify.
// Contract: start() runs `executable arguments...` with a stream socket, a status page, captured
// standard output and a process group of its own. A monitor thread takes what it says while nobody
// receives, kills it when it is silent for too long while it has work or holds too much memory, and
// reaps it. Every process ends with exactly one Ending event. The destructor kills. Call start()
// from a thread that outlives the process: the kernel kills the child when that thread ends.
// Example:
//   auto worker = WorkerProcess::start({.arguments = {"worker", "--plugin", path}});
//   (*worker)->submit(FrameType::kRun, payload);
//   for (;;) { auto event = (*worker)->receive(); if (std::get_if<Ending>(&event)) break; ... }
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/core/result.h"
#include "harness/plugin/frame.h"

namespace kv {

/// File descriptors that a worker finds open.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kWorkerStatusPage = 4;

struct WorkerSpec {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;
  /// Longest time without any progress while the worker has something to do, less what it waited
  /// for a processor. More is a hang.
  std::chrono::milliseconds silence_max = std::chrono::seconds(60);
  uint64_t memory_bytes_max = 0;  // resident; 0: default_worker_memory()
};

/// The lesser of 12 GiB and 70 % of this machine's memory.
uint64_t default_worker_memory();

/// How a worker process came to its end.
struct Ending {
  enum class Cause : uint8_t { kExited, kSignalled, kHung, kMemory, kMalformed, kStopped };
  Cause cause = Cause::kExited;
  int code = 0;        // exit status or signal number
  uint32_t phase = 0;  // a Phase, as the status page last said; untrusted
  uint32_t op_index = 0, layer = 0;
  std::string message;  // "was killed by SIGSEGV in attend"
  std::string output;   // the end of what it wrote to standard output and error, printable
};

using WorkerEvent = std::variant<Frame, Ending>;

class WorkerProcess {
 public:
  static Result<std::unique_ptr<WorkerProcess>> start(const WorkerSpec& spec);
  ~WorkerProcess();

  /// Sends a small frame that the worker will answer with a kEnd frame. False when it is gone.
  bool submit(FrameType type, std::span<const std::byte> payload);
  /// The next event in order; blocks. After the Ending it returns the Ending again.
  WorkerEvent receive();
  /// As receive(), but gives up after `wait`.
  std::optional<WorkerEvent> receive_within(std::chrono::milliseconds wait);
  /// Changes the limit for what is running and for what follows.
  void set_silence_max(std::chrono::milliseconds limit);
  /// Kills the worker; an Ending with cause kStopped follows, unless it had ended already.
  void stop();

 private:
  WorkerProcess();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kv
