#include "harness/run/stream_graph.h"

#include <string>

namespace kv {

StreamGraph::~StreamGraph() {
  if (launchable_ != nullptr) runtime_.destroy_graph_launch(launchable_);
  if (graph_ != nullptr) runtime_.destroy_graph(graph_);
}

Result<void> StreamGraph::check(const char* call, int code) const {
  if (code == 0) return {};
  runtime_.last_error();  // told of here
  return environment_error(std::string(call) + " failed: " + runtime_.describe(code));
}

Result<void> StreamGraph::begin(void* stream) {
  constexpr int kThreadLocal = 1;
  return check("cudaStreamBeginCapture", runtime_.begin_capture(stream, kThreadLocal));
}

Result<void> StreamGraph::end(void* stream) {
  KV_RETURN_IF_ERROR(check("cudaStreamEndCapture", runtime_.end_capture(stream, &graph_)));
  return check("cudaGraphInstantiate", runtime_.instantiate_graph(&launchable_, graph_, 0));
}

Result<void> StreamGraph::launch(void* stream) const {
  return check("cudaGraphLaunch", runtime_.launch_graph(launchable_, stream));
}

}  // namespace kv
