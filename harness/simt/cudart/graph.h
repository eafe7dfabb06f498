// Purpose: work that was captured instead of issued, and its replay.
// Contract: a graph is a list of operations; node i follows nodes older than i. Plain data: a copy
// is an independent graph, and one graph may be replayed any number of times.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "harness/simt/cudart/timeline.h"

namespace kv::simt::cudart {

/// What a stream is asked to do. `run` returns the error that the device is left with; it may be
/// called again when a graph is replayed.
struct Operation {
  std::function<cudaError_t()> run;
  bool touches_host = false;
  bool may_write_host = true;  // host memory that the program can see
};

struct Graph {
  struct Node {
    Operation operation;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

/// An instantiated graph. Two launches of one never overlap, whatever their streams.
struct GraphExec {
  Graph graph;
  WorkId last = 0;
};

/// Nodes that no other node follows.
std::vector<size_t> leaves_of(const Graph& graph);
/// True if every node is one of `frontier` or comes before one.
bool is_joined(const Graph& graph, const std::vector<size_t>& frontier);
bool same_topology(const Graph& a, const Graph& b);

}  // namespace kv::simt::cudart
