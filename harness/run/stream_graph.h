// Purpose: work of a stream, captured once and launched as often as one likes.
// Contract: between begin() and end() calls on the stream are noted and not executed. end() fails
// where the runtime says that they cannot be captured (something synchronised, a side stream was
// not joined); the stream then captures no more. Freed by the destructor.
// Example:  graph.begin(stream); plugin.attend(...); graph.end(stream); graph.launch(stream);
#pragma once

#include "harness/core/result.h"
#include "harness/plugin/runtime.h"

namespace kv {

class StreamGraph {
 public:
  explicit StreamGraph(const CudaRuntime& runtime) : runtime_(runtime) {}
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;
  ~StreamGraph();

  bool is_captured() const { return launchable_ != nullptr; }
  Result<void> begin(void* stream);
  Result<void> end(void* stream);
  Result<void> launch(void* stream) const;

 private:
  Result<void> check(const char* call, int code) const;

  const CudaRuntime& runtime_;
  void* graph_ = nullptr;
  void* launchable_ = nullptr;
};

}  // namespace kv
