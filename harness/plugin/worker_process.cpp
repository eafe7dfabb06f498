#include "harness/plugin/worker_process.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "harness/plugin/spawn.h"
#include "harness/plugin/status_page.h"
#include "harness/plugin/text.h"

namespace kv {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{10};                // how often limits are looked at
constexpr milliseconds kDeathMax{2000};          // from closing the socket to being dead
constexpr uint64_t kQueuedBytesMax = 256 << 20;  // then the worker must wait for its reader
constexpr size_t kOutputBytesMax = 8 << 10;      // of captured output, the last ones
constexpr size_t kReadBytes = 256 << 10;

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

}  // namespace

struct WorkerProcess::State {
  Child child;
  uint64_t memory_bytes_max = 0;
  std::thread monitor;

  std::mutex mutex;
  std::condition_variable changed;  // ending
  std::deque<Frame> frames;         // guarded by mutex, as all below
  uint64_t frames_bytes = 0;
  std::optional<Ending> ending;
  milliseconds silence_max{0};
  bool stop_wanted = false;
  uint64_t outstanding = 1;   // kEnd (or first kHello) frames that are still to come
  bool reader_waits = false;  // receive() listens to the socket: the monitor need not
  FrameAssembler assembler;
  bool heard = false;  // something was read since the limits were looked at
  std::optional<Clock::time_point> socket_closed_at;
  std::vector<std::byte> buffer = std::vector<std::byte>(kReadBytes);

  // Of the monitor thread alone.
  std::string output;
  uint64_t progress_seen = 0;
  struct Silence {
    Clock::time_point since;
    std::chrono::nanoseconds waited;  // time_without_processor by then
  };
  std::optional<Silence> silence;    // from the first look that found no progress
  Clock::time_point looked_at = {};  // when the process was last looked after
  std::optional<Ending::Cause> killed_for;

  ~State();
  void run_monitor();
  struct Socket {
    bool room = false;         // for what it holds
    bool is_monitors = false;  // nobody else listens to it
    bool closed = false;
  };
  Socket look_at_socket();
  bool read_socket();
  bool wait_for_socket(milliseconds wait, std::unique_lock<std::mutex>& held);
  void read_output();
  void enforce_limits(Clock::time_point now);
  bool is_silent(Clock::time_point now, milliseconds limit);
  void kill_for(Ending::Cause cause);
  void finish(int wait_status);
  Ending make_ending(int wait_status) const;
  std::optional<WorkerEvent> take();
};

WorkerProcess::WorkerProcess() : state_(std::make_unique<State>()) {}
WorkerProcess::~WorkerProcess() = default;

WorkerProcess::State::~State() {
  if (monitor.joinable()) {
    {
      const std::lock_guard held(mutex);
      stop_wanted = true;
    }
    monitor.join();
  }
  if (child.status != nullptr) munmap(child.status, sizeof(StatusPage));
}

uint64_t default_worker_memory() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(uint64_t{12} << 30, pages * page_bytes / 10 * 7);
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerSpec& spec) {
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess);
  State& state = *worker->state_;
  KV_ASSIGN_OR_RETURN(state.child, spawn_child(spec));
  state.silence_max = spec.silence_max;
  state.memory_bytes_max =
      spec.memory_bytes_max == 0 ? default_worker_memory() : spec.memory_bytes_max;
  state.monitor = std::thread([&state] { state.run_monitor(); });
  return worker;
}

// receive() reads the socket itself, so that a frame wakes one thread and no other. While its
// caller is busy otherwise, the monitor takes what comes, and a worker need not wait.
void WorkerProcess::State::run_monitor() {
  const Descriptor death(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  int wait_status = 0;
  bool exited = false, died = false, listens = false;
  for (;;) {
    const Clock::time_point now = Clock::now();
    const bool due = now - looked_at >= kTick || exited || died;
    if (due) looked_at = now;
    if (due && !exited) exited = waitpid(child.pid, &wait_status, WNOHANG) == child.pid;
    const Socket socket = look_at_socket();
    listens = socket.room && !socket.closed && (exited || ((due || listens) && socket.is_monitors));
    std::array<pollfd, 3> waits = {pollfd{listens ? child.socket.get() : -1, POLLIN, 0},
                                   pollfd{child.output.get(), POLLIN, 0},
                                   pollfd{exited ? -1 : death.get(), POLLIN, 0}};
    const bool drains = exited && socket.room;
    poll(waits.data(), waits.size(), drains ? 0 : static_cast<int>(kTick.count()));
    if (waits[1].revents != 0) read_output();
    died = waits[2].revents != 0;
    bool more = false;
    if (waits[0].revents != 0) {
      const std::lock_guard held(mutex);
      more = (exited || !reader_waits) && read_socket();
    }
    // What a dead worker had sent is still delivered, as its reader makes room.
    if (drains && !more) return finish(wait_status);
    if (due && !exited) enforce_limits(now);
  }
}

WorkerProcess::State::Socket WorkerProcess::State::look_at_socket() {
  const std::lock_guard held(mutex);
  return {.room = frames_bytes < kQueuedBytesMax || stop_wanted,
          .is_monitors = !reader_waits,
          .closed = socket_closed_at.has_value()};
}

/// True when something arrived; false at the end of the stream. The mutex is held.
bool WorkerProcess::State::read_socket() {
  const ssize_t got = recv(child.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got <= 0) {
    if (got == 0) socket_closed_at = Clock::now();
    return false;
  }
  assembler.add(std::span(buffer).first(static_cast<size_t>(got)));
  heard = true;
  while (auto frame = assembler.next()) {
    const bool answers = frame->type == FrameType::kEnd || frame->type == FrameType::kHello;
    if (answers && outstanding > 0) --outstanding;
    frames_bytes += frame->payload.size();
    frames.push_back(std::move(*frame));
  }
  return true;
}

/// Until something came, the worker ended, or a short while is over; false without a socket.
bool WorkerProcess::State::wait_for_socket(milliseconds wait, std::unique_lock<std::mutex>& held) {
  if (socket_closed_at || assembler.malformed()) return false;
  reader_waits = true;
  held.unlock();
  // The monitor may have the last word of a worker whose children keep its socket open.
  pollfd socket{child.socket.get(), POLLIN, 0};
  poll(&socket, 1, static_cast<int>(std::min(wait, kTick).count()));
  held.lock();
  reader_waits = false;
  if (socket.revents != 0) read_socket();
  return true;
}

void WorkerProcess::State::read_output() {
  std::array<char, 4096> chunk;
  const ssize_t got = read(child.output.get(), chunk.data(), chunk.size());
  if (got <= 0) {
    child.output = Descriptor();
    return;
  }
  output.append(chunk.data(), static_cast<size_t>(got));
  if (output.size() > kOutputBytesMax) output.erase(0, output.size() - kOutputBytesMax);
}

void WorkerProcess::State::enforce_limits(Clock::time_point now) {
  const uint64_t progress = child.status->progress.load(std::memory_order_relaxed);
  bool stop = false, moved = progress != progress_seen, malformed = false, outlived = false;
  milliseconds limit{0};
  {
    const std::lock_guard held(mutex);
    stop = stop_wanted;
    // Also one that waits for its reader, or has nothing to do, is not silent.
    moved =
        std::exchange(heard, false) || moved || frames_bytes >= kQueuedBytesMax || outstanding == 0;
    limit = silence_max;
    malformed = assembler.malformed();
    // A process that dies closes its socket first; one that lives on without it can never answer.
    outlived = socket_closed_at && now - *socket_closed_at > kDeathMax;
  }
  if (killed_for) return;
  if (stop) return kill_for(Ending::Cause::kStopped);
  if (malformed || outlived) return kill_for(Ending::Cause::kMalformed);
  if (moved) {
    progress_seen = progress;
    silence.reset();
  } else if (is_silent(now, limit)) {
    return kill_for(Ending::Cause::kHung);
  }
  if (resident_bytes(child.pid) > memory_bytes_max) kill_for(Ending::Cause::kMemory);
}

// On a busy machine a worker that gets no processor is not at fault.
bool WorkerProcess::State::is_silent(Clock::time_point now, milliseconds limit) {
  const std::chrono::nanoseconds waited = time_without_processor(child.pid);
  if (!silence) silence = {now, waited};
  return now - silence->since - (waited - silence->waited) > limit;
}

void WorkerProcess::State::kill_for(Ending::Cause cause) {
  killed_for = cause;
  kill(-child.pid, SIGKILL);  // the whole group: a plugin may have children
  kill(child.pid, SIGKILL);
}

void WorkerProcess::State::finish(int wait_status) {
  kill(-child.pid, SIGKILL);
  Ending end = make_ending(wait_status);
  const std::lock_guard held(mutex);
  ending = std::move(end);
  changed.notify_all();
}

Ending WorkerProcess::State::make_ending(int wait_status) const {
  Ending end;
  end.phase = child.status->phase.load(std::memory_order_relaxed);
  end.op_index = child.status->op_index.load(std::memory_order_relaxed);
  end.layer = child.status->layer.load(std::memory_order_relaxed);
  end.output = printable(output, kOutputBytesMax);
  const bool signalled = WIFSIGNALED(wait_status);
  end.code = signalled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  end.cause = killed_for  ? *killed_for
              : signalled ? Ending::Cause::kSignalled
                          : Ending::Cause::kExited;
  const std::string where = std::string(" in ") + phase_name(end.phase);
  switch (end.cause) {
    case Ending::Cause::kExited:
      end.message = "exited with status " + std::to_string(end.code) + where;
      break;
    case Ending::Cause::kSignalled:
      end.message = "was killed by " + signal_name(end.code) + where;
      break;
    case Ending::Cause::kHung:
      end.message = "made no progress within the time limit" + where;
      break;
    case Ending::Cause::kMemory:
      end.message = "exceeded the memory limit" + where;
      break;
    case Ending::Cause::kMalformed:
      end.message = "damaged its channel to kverify" + where;
      break;
    case Ending::Cause::kStopped:
      end.message = "was stopped by kverify";
      break;
  }
  return end;
}

bool WorkerProcess::submit(FrameType type, std::span<const std::byte> payload) {
  {
    const std::lock_guard held(state_->mutex);
    ++state_->outstanding;
  }
  return write_frame(state_->child.socket.get(), type, payload);
}

std::optional<WorkerEvent> WorkerProcess::State::take() {
  if (frames.empty()) return ending ? std::optional<WorkerEvent>(*ending) : std::nullopt;
  Frame frame = std::move(frames.front());
  frames.pop_front();
  frames_bytes -= frame.payload.size();
  return frame;
}

WorkerEvent WorkerProcess::receive() {
  for (;;) {
    if (auto event = receive_within(milliseconds(1000))) return std::move(*event);
  }
}

std::optional<WorkerEvent> WorkerProcess::receive_within(milliseconds wait) {
  const Clock::time_point until = Clock::now() + wait;
  std::unique_lock held(state_->mutex);
  for (;;) {
    if (auto event = state_->take()) return event;
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    // What is left to come without a socket is the ending.
    if (!state_->wait_for_socket(left, held)) state_->changed.wait_until(held, until);
  }
}

void WorkerProcess::set_silence_max(milliseconds limit) {
  const std::lock_guard held(state_->mutex);
  state_->silence_max = limit;
}

void WorkerProcess::stop() {
  const std::lock_guard held(state_->mutex);
  state_->stop_wanted = true;
}

}  // namespace kv
