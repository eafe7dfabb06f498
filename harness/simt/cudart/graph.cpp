#include "harness/simt/cudart/graph.h"

namespace kv::simt::cudart {

std::vector<size_t> leaves_of(const Graph& graph) {
  std::vector<bool> followed(graph.nodes.size());
  for (const Graph::Node& node : graph.nodes) {
    for (const size_t before : node.after) followed[before] = true;
  }
  std::vector<size_t> leaves;
  for (size_t i = 0; i < followed.size(); ++i) {
    if (!followed[i]) leaves.push_back(i);
  }
  return leaves;
}

bool is_joined(const Graph& graph, const std::vector<size_t>& frontier) {
  std::vector<bool> reached(graph.nodes.size());
  for (const size_t node : frontier) reached[node] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {  // followers come later, so one pass is enough
    if (!reached[i]) return false;
    for (const size_t before : graph.nodes[i].after) reached[before] = true;
  }
  return true;
}

bool same_topology(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (a.nodes[i].after != b.nodes[i].after) return false;
  }
  return true;
}

}  // namespace kv::simt::cudart
