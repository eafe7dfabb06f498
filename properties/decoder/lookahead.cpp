// Lookahead decoding (Fu et al., "Break the Sequential Dependency of LLM Inference Using Lookahead
// Decoding", ICML 2024): no draft model. A window of guesses is improved step by step (Jacobi), its
// diagonals become n-grams, and n-grams that begin with the last token are verified in the same
// step. Each token of the window sees the first level up to its column, then its own column: a
// tree.
#include <algorithm>
#include <deque>
#include <map>

#include "properties/decoder/speculative_run.h"

namespace kv::decoder {
namespace {

constexpr size_t kGramsMax = 64;  // kept of each first token

/// Tokens to append, each once after the same parent: equal guesses share their slots.
class Guesses {
 public:
  explicit Guesses(std::vector<Token> pending) : tokens_(std::move(pending)) {
    for (size_t i = 0; i < tokens_.size(); ++i) parents_.push_back(static_cast<int32_t>(i) - 1);
  }
  size_t add(size_t parent, Token token) {
    const auto [at, is_new] = children_.try_emplace({parent, token}, tokens_.size());
    if (is_new) {
      tokens_.push_back(token);
      parents_.push_back(static_cast<int32_t>(parent));
    }
    return at->second;
  }
  /// The guess of `token` after `parent`; 0 where there is none, for nothing guesses the first.
  size_t after(size_t parent, Token token) const {
    const auto found = children_.find({parent, token});
    return found == children_.end() ? 0 : found->second;
  }
  const std::vector<Token>& tokens() const { return tokens_; }
  const std::vector<int32_t>& parents() const { return parents_; }

 private:
  std::vector<Token> tokens_;
  std::vector<int32_t> parents_;
  std::map<std::pair<size_t, Token>, size_t> children_;
};

class Looker : SpeculativeRun {
 public:
  Looker(EngineDecoder& decoder, const std::vector<Token>& prompt, Looking how)
      : SpeculativeRun(decoder, prompt), how_(how) {
    for (uint32_t level = 0; level < how_.levels; ++level) {
      window_.emplace_back(how_.columns);
      for (uint32_t column = 0; column < how_.columns; ++column)
        window_.back()[column] = prompt[(level + column) % prompt.size()];
    }
  }

  Speculation run(size_t count) {
    return decode(count, [this] { look(); });
  }

 private:
  void add_grams(size_t root, Guesses& guesses) const {
    const auto known = grams_.find(sequence_.back());
    if (known == grams_.end()) return;
    const size_t count = std::min<size_t>(how_.verified, known->second.size());
    for (size_t i = 0; i < count; ++i) {
      size_t at = root;
      for (const Token token : known->second[i]) at = guesses.add(at, token);
    }
  }

  /// Where the last level of each column stands.
  std::vector<size_t> add_window(size_t root, Guesses& guesses) const {
    std::vector<size_t> ends;
    size_t first = root;
    for (uint32_t column = 0; column < how_.columns; ++column) {
      first = guesses.add(first, window_[0][column]);
      size_t at = first;
      for (uint32_t level = 1; level < how_.levels; ++level)
        at = guesses.add(at, window_[level][column]);
      ends.push_back(at);
    }
    return ends;
  }

  /// What the model says after each column is its new last level; the first one becomes an n-gram.
  void improve_window(const RowLogits& logits, const std::vector<size_t>& ends) {
    std::vector<Token> next;
    for (uint32_t column = 0; column < how_.columns; ++column) {
      next.push_back(greedy(logits[ends[column]]));
      std::vector<Token> gram;
      for (uint32_t level = 1; level < how_.levels; ++level) gram.push_back(window_[level][column]);
      gram.push_back(next.back());
      auto& known = grams_[window_[0][column]];
      std::erase(known, gram);
      known.push_front(std::move(gram));
      if (known.size() > kGramsMax) known.pop_back();
    }
    window_.pop_front();
    window_.push_back(std::move(next));
  }

  void look() {
    const uint64_t stored = decoder_.tokens(kOne).size();
    Guesses guesses({sequence_.begin() + static_cast<ptrdiff_t>(stored), sequence_.end()});
    const size_t root = guesses.tokens().size() - 1;
    add_grams(root, guesses);
    const std::vector<size_t> ends = add_window(root, guesses);
    // An engine takes all of a tree for speculative, what is pending too, and keeps one path of it.
    const auto all = static_cast<uint32_t>(guesses.tokens().size());
    const RowLogits logits = decoder_.step({{.request = kOne,
                                             .append = guesses.tokens(),
                                             .speculative = all,
                                             .parents = guesses.parents()}})[0];
    ++s_.verifies;
    improve_window(logits, ends);
    emit(logits[root]);
    // Accepted tokens that lie behind the root in order may stay; others are appended again.
    size_t at = root, kept = root;
    while ((at = guesses.after(at, sequence_.back())) != 0) {
      if (at == kept + 1) kept = at;
      ++s_.accepted;
      emit(logits[at]);
    }
    if (kept + 1 < guesses.tokens().size()) decoder_.truncate(kOne, stored + kept + 1);
  }

  Looking how_;
  std::deque<std::vector<Token>> window_;                  // [level][column]
  std::map<Token, std::deque<std::vector<Token>>> grams_;  // by what stands before, newest first
};

}  // namespace

Speculation decode_lookahead(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                             Looking how) {
  return Looker(decoder, prompt, how).run(count);
}

}  // namespace kv::decoder
