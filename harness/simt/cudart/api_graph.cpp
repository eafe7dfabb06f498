// Exported: graphs, made by capture and replayed.
#include <cuda_runtime_api.h>

#include <utility>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t handle) {
  return api([&](Runtime& runtime) {
    const Graph* graph = runtime.graphs.find(handle);
    if (!out || !graph) return cudaErrorInvalidValue;
    *out = runtime.graph_execs.insert({.graph = *graph});
    return cudaSuccess;
  });
}

/// Launching into a capturing stream adds the graph's work to the capture.
cudaError_t capture_graph(Stream& stream, const Graph& graph) {
  if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  auto& nodes = stream.capture->graph.nodes;
  const size_t first = nodes.size();
  for (Graph::Node node : graph.nodes) {
    if (node.after.empty()) {
      node.after = stream.frontier;
    } else {
      for (size_t& before : node.after) before += first;
    }
    nodes.push_back(std::move(node));
  }
  if (graph.nodes.empty()) return cudaSuccess;
  stream.frontier.clear();
  for (const size_t leaf : leaves_of(graph)) stream.frontier.push_back(first + leaf);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return instantiate(exec, graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(exec, graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return api([&](Runtime& runtime) {
    GraphExec* exec = runtime.graph_execs.find(handle);
    Stream* stream = stream_of(runtime, stream_handle, "cudaGraphLaunch");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!exec) {
      runtime.report_misuse("cudaGraphLaunch", "the handle is not that of a live graph");
      return cudaErrorInvalidValue;
    }
    if (stream->capture) return capture_graph(*stream, exec->graph);
    return runtime.replay(*stream, *exec);
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    if (!stream_of(runtime, stream, "cudaGraphUpload")) return cudaErrorInvalidResourceHandle;
    return runtime.graph_execs.find(handle) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec_handle, cudaGraph_t graph_handle,
                                cudaGraphExecUpdateResultInfo* info) {
  return api([&](Runtime& runtime) {
    GraphExec* exec = runtime.graph_execs.find(exec_handle);
    const Graph* graph = runtime.graphs.find(graph_handle);
    if (!exec || !graph || !info) return cudaErrorInvalidValue;
    *info = {};
    if (!same_topology(exec->graph, *graph)) {
      info->result = cudaGraphExecUpdateErrorTopologyChanged;
      return cudaErrorGraphExecUpdateFailure;
    }
    exec->graph = *graph;
    info->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return api([&](Runtime& runtime) {
    const Graph* graph = runtime.graphs.find(handle);
    if (!graph || !count) return cudaErrorInvalidValue;
    if (nodes) return cudaErrorNotSupported;  // nodes have no handles here; they can be counted
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return api([&](Runtime& runtime) {
    if (!runtime.graphs.find(handle)) return cudaErrorInvalidValue;
    runtime.graphs.erase(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return api([&](Runtime& runtime) {
    if (!runtime.graph_execs.find(handle)) return cudaErrorInvalidValue;
    runtime.graph_execs.erase(handle);
    return cudaSuccess;
  });
}
