// Purpose: finds the pages that hold a prefix already computed.
// Contract: a tree; a node stands for a prefix of full pages and knows, for each group, the page
// with its last page_slots tokens, if one is published. A child is found by a hash and confirmed by
// comparing all tokens and the identity of the root: side input and position offset. A node lives
// as long as something holds it: a child, a request that walked down to it, a page. No room for a
// node means that a page stays unpublished. Nothing is allocated after construction.
// Example:  NodeId n = index.find(kNoNode, root, tokens.first(16));  // kNoNode: not there
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "impl/cache/page_pool.h"
#include "kvattn/units.h"

namespace kvattn {

/// What K and V depend on beside the tokens.
struct PrefixRoot {
  SideInput side_input = {};
  int64_t position_offset = 0;
  bool operator==(const PrefixRoot&) const = default;
};

class PrefixIndex {
 public:
  struct Size {
    int64_t nodes, page_slots, groups;
    int hash_bits;
  };
  explicit PrefixIndex(Size size);

  /// The child of `parent` (kNoNode: of the empty prefix) with these page_slots tokens.
  NodeId find(NodeId parent, const PrefixRoot& root, std::span<const Token> tokens) const;
  /// Adds that child, which must not be there, with no holder; kNoNode when there is no room.
  NodeId add(NodeId parent, const PrefixRoot& root, std::span<const Token> tokens);

  void hold(NodeId node);
  /// One holder less; a node without holders goes, and its parent loses one.
  void release(NodeId node);

  NodeId parent(NodeId node) const { return nodes_[index_of(node)].parent; }
  /// Pages of the prefix.
  int32_t depth(NodeId node) const { return nodes_[index_of(node)].depth; }
  Page page(NodeId node, Group group) const { return pages_[page_index(node, group)]; }
  /// A page holds its node. The place must be empty.
  void set_page(NodeId node, Group group, Page page);
  void move_page(NodeId node, Group group, Page to) { pages_[page_index(node, group)] = to; }
  void remove_page(NodeId node, Group group);

  // For snapshots.
  std::span<const Page> pages(NodeId node) const {
    return {pages_.data() + page_index(node, Group{0}), static_cast<size_t>(size_.groups)};
  }
  int64_t capacity() const { return static_cast<int64_t>(nodes_.size()); }
  /// Of one prefix, from add() to its end; no other one ever has it. From 1 on.
  uint64_t identity(NodeId node) const { return nodes_[index_of(node)].identity; }
  bool is_used(NodeId node) const { return nodes_[index_of(node)].holders > 0; }
  const PrefixRoot& root(NodeId node) const { return nodes_[index_of(node)].root; }
  std::span<const Token> tokens(NodeId node) const {
    return {tokens_.get() + index_of(node) * size_.page_slots,
            static_cast<size_t>(size_.page_slots)};
  }

 private:
  struct Node {
    NodeId parent = kNoNode, next = kNoNode;  // next: in the bucket, or in the list of unused nodes
    uint32_t holders = 0;
    int32_t depth = 1;
    uint64_t hash = 0, identity = 0;
    PrefixRoot root;
  };
  size_t page_index(NodeId node, Group group) const {
    return index_of(node) * size_.groups + index_of(group);
  }
  uint64_t hash_of(NodeId parent, const PrefixRoot& root, std::span<const Token> tokens) const;
  NodeId& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  Size size_;
  std::vector<Node> nodes_;
  std::vector<Page> pages_;          // [node][group]
  std::unique_ptr<Token[]> tokens_;  // [node][page_slots]; memory is touched when it is used
  std::vector<NodeId> buckets_;
  NodeId unused_ = kNoNode;
  uint64_t added_ = 0;
};

}  // namespace kvattn
