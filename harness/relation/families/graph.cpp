// Family graph: attend is captured into a graph, which is launched twice, so that the second time
// nothing of the plugin's host code runs before it.
// Holds: the same bits of O, LSE and cache, where KV_PROMISE_GRAPH: a launch from a graph gives
// what the call gave. A plugin that does not promise it is not asked.
// Of: cases that call attend themselves.
// Kills: 231_graph_gets_longer_splits
#include <algorithm>

#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource&, Image& image) {
  Exec& exec = image.c.exec;
  if (exec.graph) return false;
  exec.graph = true;
  exec.repeat = std::max(exec.repeat, 2u);
  return true;
}

}  // namespace

constexpr Relation graph = {
    .name = "graph",
    .purpose = "the calls captured into a graph, which is launched twice",
    .finds = "work that a call does on the host or on another stream, and a graph does not repeat",
    .agreement = Agreement::kBits,
    .promises = KV_PROMISE_GRAPH,
    .same_cache = true,
    .change = change};

}  // namespace kv::families
