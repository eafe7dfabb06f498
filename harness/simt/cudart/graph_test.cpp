#include "harness/simt/cudart/graph.h"

#include <gtest/gtest.h>

namespace kv::simt::cudart {
namespace {

/// 0 -> {1, 2} -> 3
Graph diamond() {
  Graph graph;
  graph.nodes = {{{}, {}}, {{}, {0}}, {{}, {0}}, {{}, {1, 2}}};
  return graph;
}

TEST(Graph, LeavesAreWhatNobodyFollows) {
  Graph graph = diamond();
  EXPECT_EQ(leaves_of(graph), std::vector<size_t>({3}));
  graph.nodes.pop_back();
  EXPECT_EQ(leaves_of(graph), std::vector<size_t>({1, 2}));
  EXPECT_TRUE(leaves_of({}).empty());
}

TEST(Graph, JoinedMeansEverythingLeadsToTheFrontier) {
  EXPECT_TRUE(is_joined(diamond(), {3}));
  EXPECT_FALSE(is_joined(diamond(), {1}));
  EXPECT_FALSE(is_joined(diamond(), {1, 2})) << "node 3 is left over";
  EXPECT_TRUE(is_joined({}, {}));
}

TEST(Graph, TopologyIsNodesAndEdges) {
  Graph other = diamond();
  EXPECT_TRUE(same_topology(diamond(), other));
  other.nodes[3].after = {1};
  EXPECT_FALSE(same_topology(diamond(), other));
  other.nodes.pop_back();
  EXPECT_FALSE(same_topology(diamond(), other));
}

}  // namespace
}  // namespace kv::simt::cudart
