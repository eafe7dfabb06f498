// Requests that hold a tree of guesses, of which one path has to be left.
#include <algorithm>

#include "kvattn/engine.h"

namespace kvattn {
namespace {

constexpr int32_t kGone = -2;

bool is_path(const std::vector<int32_t>& parents) {
  for (int32_t i = 0; i < std::ssize(parents); ++i) {
    if (parents[i] != i - 1) return false;
  }
  return true;
}

}  // namespace

Engine::Tree* Engine::tree_of(RequestId request) {
  const auto found = std::ranges::find(trees_, request, &Tree::request);
  return found == trees_.end() ? nullptr : &*found;
}

Status Engine::check_no_branches(const char* operation, RequestId request) const {
  if (std::ranges::find(trees_, request, &Tree::request) == trees_.end()) return {};
  return refused(operation, ": request ", index_of(request),
                 " holds a tree; expected one path of it");
}

// The last slots, or some in the middle; a path is no tree any more.
void Engine::cut_tree(RequestId request, SlotRange gap) {
  Tree* tree = tree_of(request);
  if (tree == nullptr) return;
  auto& parents = tree->parents;
  const auto count = static_cast<int64_t>(parents.size());
  const int64_t begin = std::clamp<int64_t>(gap.begin.value - tree->begin, 0, count);
  const int64_t end = std::clamp<int64_t>(gap.end.value - tree->begin, begin, count);
  parents.erase(parents.begin() + begin, parents.begin() + end);
  for (int32_t& parent : parents) {
    if (parent >= end) {
      parent -= static_cast<int32_t>(end - begin);
    } else if (parent >= begin) {
      parent = kGone;
    }
  }
  if (is_path(parents)) std::erase_if(trees_, [&](const Tree& t) { return t.request == request; });
}

}  // namespace kvattn
