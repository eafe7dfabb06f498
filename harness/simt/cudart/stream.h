// Purpose: streams and events: who waits for whom.
// Contract: a stream is the tail of a chain in the timeline. Work of the legacy default stream
// follows all earlier work of blocking streams and precedes all their later work; streams made with
// cudaStreamNonBlocking are left out of that. A stream that captures collects graph nodes instead.
// Source: CUDA Runtime API, "Stream synchronization behavior"; CUDA C++ Programming Guide,
// "Creating a Graph Using Stream Capture".
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "harness/simt/cudart/graph.h"
#include "harness/simt/cudart/handles.h"

namespace kv::simt::cudart {

struct Stream;

struct Capture {
  uint64_t id = 0;
  const Stream* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  bool ended = false;
  Graph graph;
};

struct Stream {
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  uint64_t id = 0;
  WorkId tail = 0;
  std::shared_ptr<Capture> capture = {};  // null when the stream does not capture
  std::vector<size_t> frontier = {};      // nodes that the next captured one follows

  bool is_blocking() const { return (flags & cudaStreamNonBlocking) == 0; }
};

struct Event {
  /// One recording: a later one does not disturb work that still refers to an earlier one.
  struct Record {
    WorkId work = 0;
    uint64_t ticks = 0;  // device time when it was reached
  };
  unsigned flags = cudaEventDefault;
  std::shared_ptr<Record> record = {};    // null until recorded
  std::shared_ptr<Capture> capture = {};  // set when last recorded in a capturing stream
  std::vector<size_t> frontier = {};
};

class Streams {
 public:
  cudaStream_t create(Stream stream);
  /// Null for an unknown handle. 0 and cudaStreamLegacy are the legacy default stream,
  /// cudaStreamPerThread the calling thread's own.
  Stream* find(cudaStream_t handle);
  /// Work already issued goes on, and still precedes later work of the legacy stream.
  void destroy(cudaStream_t handle);

  /// What work issued to the stream now must follow.
  std::vector<WorkId> predecessors(const Stream& stream) const;
  /// Forgets issued work: it has all been completed or dropped.
  void forget_work();

  /// What the calling thread may do while somebody captures: cudaThreadExchangeStreamCaptureMode.
  static cudaStreamCaptureMode& thread_capture_mode();
  bool is_legacy(const Stream& stream) const { return &stream == &legacy_; }
  /// Destroys every created stream.
  void forget_created();

  std::vector<Stream*> all();
  template <class Visit>
  void each(Visit visit) {
    visit(legacy_);
    for (auto& [thread, stream] : per_thread_) visit(stream);
    for (const auto& [number, stream] : created_) visit(*stream);
  }
  uint64_t next_capture_id() { return ++captures_; }

 private:
  Stream legacy_;
  std::map<std::thread::id, Stream> per_thread_;
  HandleTable<Stream, cudaStream_t> created_{0x1000000};
  std::vector<WorkId> orphans_;  // tails of destroyed blocking streams
  uint64_t count_ = 2;           // ids 1 and 2 are the default streams
  uint64_t captures_ = 0;
};

}  // namespace kv::simt::cudart
