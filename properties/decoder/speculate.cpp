// Speculative decoding: a draft model with a cache of its own, trees where the engine has them.
#include <algorithm>

#include "properties/decoder/speculative_run.h"

namespace kv::decoder {
namespace {

class Speculator : SpeculativeRun {
 public:
  Speculator(EngineDecoder& decoder, const std::vector<Token>& prompt, Guessing how)
      : SpeculativeRun(decoder, prompt), how_(how) {}

  Speculation run(size_t count) {
    return decode(count, [this] { verify(guess()); });
  }

 private:
  // What the draft cache lacks, then one guess after another; it never sees the last of them.
  Transcript guess() {
    const auto known = static_cast<ptrdiff_t>(decoder_.draft_length(kOne));
    std::vector<Token> lacking(sequence_.begin() + known, sequence_.end());
    Transcript guesses;
    s_.draft_prefixes.push_back(sequence_);
    for (uint32_t i = 0; i < how_.guesses; ++i) {
      guesses.logits.push_back(
          decoder_.step({{.request = kOne, .append = lacking}}, true)[0].back());
      guesses.tokens.push_back(greedy(guesses.logits.back()));
      lacking = {guesses.tokens.back()};
    }
    s_.drafts.push_back(guesses);
    return guesses;
  }

  // Other likely first tokens, the likeliest first.
  std::vector<Token> others(const Transcript& guesses) const {
    std::vector<Token> order(kVocabulary);
    for (Token v = 0; v < kVocabulary; ++v) order[v] = v;
    const Logits& logits = guesses.logits[0];
    std::ranges::stable_sort(order, std::greater<>(), [&](Token v) { return logits[v]; });
    std::erase(order, guesses.tokens[0]);
    order.resize(how_.branches);
    return order;
  }

  // Pending tokens are known and not appended yet; guesses follow the last of them, and so do the
  // branches. Tokens of the first branch are a prefix of the slots, and may simply stay.
  void verify(const Transcript& guesses) {
    const uint64_t stored = decoder_.tokens(kOne).size();
    DecoderRow row{.request = kOne};
    row.append.assign(sequence_.begin() + static_cast<ptrdiff_t>(stored), sequence_.end());
    const size_t root = row.append.size() - 1;
    row.append.insert(row.append.end(), guesses.tokens.begin(), guesses.tokens.end());
    const std::vector<Token> branches = others(guesses);
    if (!branches.empty()) {
      for (size_t i = 0; i < row.append.size(); ++i) {
        row.parents.push_back(static_cast<int32_t>(i) - 1);
      }
      row.append.insert(row.append.end(), branches.begin(), branches.end());
      row.parents.resize(row.append.size(), static_cast<int32_t>(root));
    }
    // An engine may take back all of a tree, and keeps one path of it.
    row.speculative = static_cast<uint32_t>(row.append.size() - (branches.empty() ? root + 1 : 0));
    const RowLogits logits = decoder_.step({row})[0];
    ++s_.verifies;
    emit(logits[root]);
    uint64_t kept = stored + root + 1;
    size_t main = 0;
    while (main < guesses.tokens.size() && sequence_.back() == guesses.tokens[main]) {
      ++kept;
      ++s_.accepted;
      emit(logits[root + 1 + main++]);
    }
    const auto branch = std::ranges::find(branches, sequence_.back());
    if (main == 0 && branch != branches.end()) {
      ++s_.accepted;
      emit(logits[root + 1 + guesses.tokens.size() +
                  static_cast<size_t>(branch - branches.begin())]);
    }
    if (kept < stored + row.append.size()) decoder_.truncate(kOne, kept);
  }

  Guessing how_;
};

}  // namespace

Speculation decode_speculative(EngineDecoder& decoder, const std::vector<Token>& prompt,
                               size_t count, Guessing how) {
  return Speculator(decoder, prompt, how).run(count);
}

}  // namespace kv::decoder
