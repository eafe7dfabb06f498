#include "impl/cache/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace kvattn {

PrefixIndex::PrefixIndex(Size size)
    : size_(size),
      nodes_(size.nodes),
      pages_(size.nodes * size.groups, kNoPage),
      tokens_(new Token[size.nodes * size.page_slots]),
      buckets_(std::bit_ceil(static_cast<uint64_t>(size.nodes) + 1), kNoNode) {
  for (int64_t i = size.nodes; i > 0; --i) {
    nodes_[i - 1].next = unused_;
    unused_ = static_cast<NodeId>(i - 1);
  }
}

// The multiply-and-fold step of wyhash, token by token.
uint64_t PrefixIndex::hash_of(NodeId parent, const PrefixRoot& root,
                              std::span<const Token> tokens) const {
  uint64_t hash = 0x9e3779b97f4a7c15;
  const auto mix = [&hash](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xa0761d6478bd642f;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ word;
  };
  mix(static_cast<uint64_t>(index_of(parent)));
  mix(index_of(root.side_input));
  mix(static_cast<uint64_t>(root.position_offset));
  for (Token token : tokens) mix(index_of(token));
  return size_.hash_bits >= 64 ? hash : hash & ((uint64_t{1} << size_.hash_bits) - 1);
}

NodeId PrefixIndex::find(NodeId parent, const PrefixRoot& root,
                         std::span<const Token> tokens) const {
  const uint64_t hash = hash_of(parent, root, tokens);
  NodeId node = buckets_[hash & (buckets_.size() - 1)];
  for (; node != kNoNode; node = nodes_[index_of(node)].next) {
    const Node& n = nodes_[index_of(node)];
    if (n.hash == hash && n.parent == parent && n.root == root &&
        std::ranges::equal(tokens, this->tokens(node))) {
      break;
    }
  }
  return node;
}

NodeId PrefixIndex::add(NodeId parent, const PrefixRoot& root, std::span<const Token> tokens) {
  if (unused_ == kNoNode) return kNoNode;
  const NodeId node = unused_;
  Node& n = nodes_[index_of(node)];
  unused_ = n.next;
  n = {.parent = parent,
       .depth = parent == kNoNode ? 1 : depth(parent) + 1,
       .hash = hash_of(parent, root, tokens),
       .identity = ++added_,
       .root = root};
  std::ranges::copy(tokens, tokens_.get() + index_of(node) * size_.page_slots);
  n.next = bucket(n.hash);
  bucket(n.hash) = node;
  if (parent != kNoNode) hold(parent);
  return node;
}

void PrefixIndex::hold(NodeId node) { ++nodes_[index_of(node)].holders; }

void PrefixIndex::release(NodeId node) {
  while (node != kNoNode) {
    Node& n = nodes_[index_of(node)];
    assert(n.holders > 0);
    if (--n.holders > 0) return;
    NodeId* link = &bucket(n.hash);
    while (*link != node) link = &nodes_[index_of(*link)].next;
    *link = n.next;
    n.next = unused_;
    unused_ = node;
    node = n.parent;
  }
}

void PrefixIndex::set_page(NodeId node, Group group, Page page) {
  assert(this->page(node, group) == kNoPage);
  pages_[page_index(node, group)] = page;
  hold(node);
}

void PrefixIndex::remove_page(NodeId node, Group group) {
  pages_[page_index(node, group)] = kNoPage;
  release(node);
}

}  // namespace kvattn
