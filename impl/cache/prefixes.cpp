// From prompts to published pages, and from written pages to published ones.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

// The longest number of full pages whose bytes every group still has as far as it needs them. Their
// path goes to node_scratch.
int64_t PagedCache::State::match(const PrefixRoot& root, std::span<const Token> prompt) {
  node_scratch.clear();
  if (!config.prefix_index) return 0;
  std::ranges::fill(run_scratch, 0);
  int64_t longest = 0;
  NodeId node = kNoNode;
  for (int64_t pages = 1; pages * page_slots() <= std::ssize(prompt); ++pages) {
    node = index.find(node, root, prompt.subspan((pages - 1) * page_slots(), page_slots()));
    if (node == kNoNode) break;
    node_scratch.push_back(node);
    bool is_there = true;
    for (int32_t g = 0; g < group_count(); ++g) {
      int64_t& run = run_scratch[g];  // pages that are there without a gap, up to this one
      run = index.page(node, Group{g}) == kNoPage ? 0 : run + 1;
      is_there &= run >= pages - first_needed_page(g, pages * page_slots());
    }
    if (is_there) longest = pages;
  }
  return longest;
}

// The content's tokens are those of the path that was matched, and its tables are empty.
void PagedCache::State::hold_prefix(Content& c, int64_t pages) {
  const int64_t slots = pages * page_slots();
  c.settled = c.written = slots;
  for (int32_t g = 0; g < group_count(); ++g) {
    c.kept[g] = first_needed_page(g, slots);
    for (int64_t p = 0; p < pages; ++p) {
      const Page page = p < c.kept[g] ? kNoPage : index.page(node_scratch[p], Group{g});
      c.tables[g].push_back(page);
      if (page == kNoPage) continue;
      pool.hold(page);
      ++counters.hit_pages;
    }
  }
  c.depth = pages;
  c.node = pages == 0 ? kNoNode : node_scratch[pages - 1];
  if (c.node != kNoNode) index.hold(c.node);
}

void PagedCache::State::publish(Content& c) {
  const int64_t slots = std::min({c.written, c.settled, c.path_slots});
  while (config.prefix_index && (c.depth + 1) * page_slots() <= slots) {
    const auto tokens =
        std::span<const Token>(c.tokens).subspan(c.depth * page_slots(), page_slots());
    NodeId node = index.find(c.node, c.root, tokens);
    if (node == kNoNode) node = index.add(c.node, c.root, tokens);
    if (node == kNoNode) return;
    index.hold(node);
    for (int32_t g = 0; g < group_count(); ++g) {
      const Page page = c.tables[g][c.depth];
      if (page == kNoPage || pool.is_published(page)) continue;
      if (index.page(node, Group{g}) != kNoPage) continue;  // somebody else's has the same bytes
      index.set_page(node, Group{g}, page);
      pool.publish(page, node);
      ++counters.published_pages;
    }
    if (c.node != kNoNode) index.release(c.node);
    c.node = node;
    ++c.depth;
  }
}

}  // namespace kvattn
