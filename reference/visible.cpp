#include "reference/visible.h"

#include "harness/core/check.h"

namespace kv::reference {
namespace {

int64_t kv_length(const MaskGeometry& g) { return static_cast<int64_t>(g.real.size()); }

int64_t bottom_right_limit(const MaskGeometry& g, int64_t query) {
  return kv_length(g) - int64_t{g.queries} + query;
}

int64_t anchor(const MaskGeometry& g, int64_t query) {
  return g.causal == Causal::kTopLeft ? query : bottom_right_limit(g, query);
}

bool in_causal_set(const MaskGeometry& g, int64_t query, int64_t slot) {
  return g.causal == Causal::kNone || slot <= anchor(g, query);
}

bool in_window_set(const MaskGeometry& g, int64_t query, int64_t slot) {
  const int64_t distance = slot - anchor(g, query);
  if (g.window_left >= 0 && distance < -g.window_left) return false;
  if (g.window_right >= 0 && distance > g.window_right) return false;
  return true;
}

// Index of the new token in `slot` among this step's real tokens; -1 for PAD and older slots.
int64_t node_of_slot(const MaskGeometry& g, int64_t slot) {
  const int64_t first = kv_length(g) - int64_t{g.append_slots};
  if (slot < first || slot >= kv_length(g) || !g.real[slot]) return -1;
  int64_t node = 0;
  for (int64_t s = first; s < slot; ++s) node += g.real[s];
  return node;
}

bool is_ancestor_or_self(std::span<const int32_t> parents, int64_t node, int64_t candidate) {
  // A path has at most as many tokens as the tree; the bound keeps a cyclic list from hanging us.
  for (size_t steps = 0; node >= 0 && steps <= parents.size(); ++steps) {
    if (node == candidate) return true;
    KV_CHECK(static_cast<size_t>(node) < parents.size(), "tree parent beyond the appended tokens");
    node = parents[node];
  }
  return false;
}

bool in_tree_set(const MaskGeometry& g, int64_t row_node, int64_t slot) {
  if (g.tree_parents.empty() || row_node < 0) return true;
  const int64_t slot_node = node_of_slot(g, slot);
  return slot_node < 0 || is_ancestor_or_self(g.tree_parents, row_node, slot_node);
}

}  // namespace

std::vector<uint8_t> visible_keys(const MaskGeometry& g, uint32_t query) {
  KV_CHECK(query < g.queries, "query row beyond the rows of the step");
  const int64_t row_node =
      g.tree_parents.empty() ? -1 : node_of_slot(g, bottom_right_limit(g, query));
  std::vector<uint8_t> visible(g.real.size());
  for (int64_t slot = 0; slot < kv_length(g); ++slot) {
    visible[slot] = g.real[slot] && in_causal_set(g, query, slot) &&
                    in_window_set(g, query, slot) && in_tree_set(g, row_node, slot);
  }
  return visible;
}

}  // namespace kv::reference
