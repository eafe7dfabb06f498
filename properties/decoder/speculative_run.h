// Purpose: what every way to decode by guessing shares: the prompt, then rounds that each emit a
// token of the model's and the guesses that it confirms, until there are enough.
// Contract: for speculate.cpp and lookahead.cpp.
#pragma once

#include "properties/decoder/decode.h"

namespace kv::decoder {

class SpeculativeRun {
 protected:
  static constexpr uint32_t kOne = 0;  // the only request

  SpeculativeRun(EngineDecoder& decoder, const std::vector<Token>& prompt)
      : decoder_(decoder), sequence_(prompt) {}

  /// `round` emits at least one token.
  template <class Round>
  Speculation decode(size_t count, Round round) {
    decoder_.admit(kOne, sequence_);
    emit(decoder_.step({{.request = kOne, .append = sequence_}})[0].back());
    while (s_.transcript.tokens.size() < count) round();
    decoder_.cancel(kOne);
    s_.yielded = s_.transcript.tokens.size() - 1;
    s_.transcript.tokens.resize(count);
    s_.transcript.logits.resize(count);
    return std::move(s_);
  }

  void emit(Logits logits) {
    sequence_.push_back(greedy(logits));
    s_.transcript.tokens.push_back(sequence_.back());
    s_.transcript.logits.push_back(std::move(logits));
  }

  EngineDecoder& decoder_;
  Speculation s_;
  std::vector<Token> sequence_;  // prompt and what was decoded
};

}  // namespace kv::decoder
