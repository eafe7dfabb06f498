// Purpose: the state behind the exported functions, and the frame that each of them stands in.
// Contract: one Runtime for each process, as the CUDA runtime's own model forces. Every exported
// function is `return api([&](Runtime& runtime) { ... });`: it holds the lock, is refused after a
// sticky error, lets no exception out, and remembers its error for cudaGetLastError.
#pragma once

#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "harness/simt/cudart/graph.h"
#include "harness/simt/cudart/handles.h"
#include "harness/simt/cudart/images.h"
#include "harness/simt/cudart/memory.h"
#include "harness/simt/cudart/model.h"
#include "harness/simt/cudart/mutations.h"
#include "harness/simt/cudart/profiler.h"
#include "harness/simt/cudart/stream.h"
#include "harness/simt/cudart/tally.h"
#include "harness/simt/cudart/timeline.h"
#include "harness/simt/device.h"

namespace kv::simt::cudart {

/// A pool of cudaMallocAsync: only its attributes; memory is the device's.
struct Pool {
  std::map<int, uint64_t> attributes;
};

class Runtime {
 public:
  static Runtime& instance();

  /// Issues work to a stream, or captures it.
  cudaError_t submit(Stream& stream, Operation operation);
  /// Issues work and completes all that was issued to the stream; nothing of a captured stream.
  cudaError_t perform(Stream& stream, Operation operation);
  /// Whether perform() would run its work at once, before it returns to anybody.
  bool is_idle() const { return timeline.pending() == 0; }
  /// Completes all work issued to the stream and returns the device's error.
  cudaError_t synchronize(Stream& stream);
  cudaError_t synchronize_device();
  /// The work that cudaStreamSynchronize waits for: the legacy stream answers for blocking ones.
  std::vector<WorkId> awaited(const Stream& stream) const;
  /// Makes one step towards the targets: cudaErrorNotReady until they are done.
  cudaError_t query(const std::vector<WorkId>& targets);
  /// Makes later work of the stream follow `before`.
  void wait_for(Stream& stream, WorkId before);
  cudaError_t replay(Stream& stream, GraphExec& exec);

  const Model& model() const { return model_of(device.config().model_sm); }
  uint64_t memory_bytes() const;
  /// Adds an API finding: `call` was made in a way that the runtime refuses.
  void report_misuse(const std::string& call, const std::string& sentence, uint64_t address = 0);
  /// Adds a finding for a kernel with an instruction that the device does not know.
  void report_unsupported(const std::string& kernel, const std::string& sentence);
  /// Adds one finding for each device allocation that is alive; returns their number.
  uint64_t report_leaks();

  /// What a process that was forked calls first: the parent's launches, findings and allocations
  /// are told by the parent.
  void begin_child();

  /// cudaDeviceReset: frees all memory, reporting what leaked, and forgets streams and errors.
  void forget_context();

  /// kv_simt_control.reset and .configure.
  void reset();
  Result<void> configure(const kv_simt_config& config);

  std::recursive_mutex mutex;
  Device& device;
  Timeline timeline;
  Memory memory;
  Streams streams;
  Mutations mutations;
  Profiler profiler;
  Images images;
  HandleTable<Event, cudaEvent_t> events{0x2000000};
  HandleTable<Graph, cudaGraph_t> graphs{0x3000000};
  HandleTable<GraphExec, cudaGraphExec_t> graph_execs{0x4000000};
  HandleTable<Pool, cudaMemPool_t> pools{0x5000000};
  cudaMemPool_t default_pool = nullptr;
  uint64_t host_writes = 0;                // pieces of work that have run and may write host memory
  cudaError_t device_error = cudaSuccess;  // sticky: the context is lost
  std::string report_path, report_json_path, profile_path, lcov_path;  // see environment.h
  std::string report_json_file;   // of this process; lives here, for it is needed at exit
  pid_t report_json_process = 0;  // whose file that is
  size_t findings_reported = 0;
  uint64_t inherited_launches = 0;     // of the process that this one was forked from
  uint64_t inherited_allocations = 0;  // the number of its newest
  Tally tally;
  bool is_late = false;      // the time limit was met
  bool is_finished = false;  // the process is ending: every call is refused

 private:
  Runtime();
  void run(const Operation& operation);
  Work as_work(const Operation& operation, std::vector<WorkId> after);
};

/// The calling thread's last error, as cudaGetLastError sees it.
cudaError_t& last_error();

namespace internal {

template <class Body>
cudaError_t guarded(Body&& body, bool refused_when_lost) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  if (runtime.is_finished) return cudaErrorCudartUnloading;
  if (refused_when_lost && runtime.device_error != cudaSuccess) return runtime.device_error;
  try {
    return body(runtime);
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (...) {  // nothing may unwind into a C caller
    return cudaErrorUnknown;
  }
}

}  // namespace internal

/// The frame of a call that needs a working device.
template <class Body>
cudaError_t api(Body&& body) {
  const cudaError_t error = internal::guarded(body, true);
  if (error != cudaSuccess) last_error() = error;
  return error;
}

/// The frame of a call that works even after a sticky error.
template <class Body>
cudaError_t api_always(Body&& body) {
  const cudaError_t error = internal::guarded(body, false);
  if (error != cudaSuccess) last_error() = error;
  return error;
}

/// The stream of a handle, or a misuse finding for `call` and null.
Stream* stream_of(Runtime& runtime, cudaStream_t handle, const char* call);
Event* event_of(Runtime& runtime, cudaEvent_t handle, const char* call);

}  // namespace kv::simt::cudart
