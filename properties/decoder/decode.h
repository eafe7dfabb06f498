// Purpose: the ways to decode greedily with one model: each must give the same tokens from the same
// logits.
// Contract: a Transcript holds the tokens that were decoded, and the logits of each position from
// the last of the prompt on. All work on an engine without other requests, and leave it empty.
// Example:  EXPECT_EQ(decode_cached(a, prompt, 20), decode_naive(b, prompt, 20));
#pragma once

#include "properties/decoder/engine_decoder.h"

namespace kv::decoder {

struct Transcript {
  std::vector<Token> tokens;
  std::vector<Logits> logits;
  bool operator==(const Transcript&) const = default;
};

/// Everything again for each token, without a cache.
Transcript decode_naive(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count);
/// The prompt at once, then token by token.
Transcript decode_cached(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count);
/// The prompt in parts of these sizes (the last one again and again), then token by token.
Transcript decode_chunked(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                          const std::vector<size_t>& parts);
/// All prompts in the same steps; the shorter ones decode while the longer ones still prefill.
std::vector<Transcript> decode_batched(EngineDecoder& decoder,
                                       const std::vector<std::vector<Token>>& prompts,
                                       size_t count);

struct Guessing {
  uint32_t guesses = 3;   // of the draft model, in a row
  uint32_t branches = 0;  // further guesses for the first of them: a tree, where there are any
};
struct Speculation {
  Transcript transcript;
  std::vector<Transcript> drafts;  // what the draft model said: its tokens and logits, each verify
  std::vector<std::vector<Token>> draft_prefixes;  // that it said it after
  uint64_t verifies = 0, accepted = 0;             // guesses
  uint64_t yielded = 0;                            // tokens of all verifies
};
/// The draft model guesses, one step verifies all guesses; the rejected ones are rolled back. Each
/// verify yields its accepted guesses and one token more.
Speculation decode_speculative(EngineDecoder& decoder, const std::vector<Token>& prompt,
                               size_t count, Guessing how);
struct Looking {
  uint32_t columns = 3, levels = 3;  // of the window of guesses; n-grams of levels + 1 tokens
  uint32_t verified = 2;             // n-grams in one step
};
/// Without a draft model: a window of guesses and n-grams out of it, each step one tree of both.
Speculation decode_lookahead(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                             Looking how);
/// The draft model alone, over a fresh cache.
RowLogits draft_naive(EngineDecoder& decoder, const std::vector<Token>& tokens);

/// The best `width` continuations by the sum of their logits, ties by beam and token.
struct Beams {
  std::vector<std::vector<Token>> tokens;  // [beam], best first, without the prompt
  std::vector<int64_t> scores;
  std::vector<std::vector<Logits>> logits;  // [step][beam]
  bool operator==(const Beams&) const = default;
};
Beams beams_cached(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                   uint32_t width);
Beams beams_naive(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                  uint32_t width);

}  // namespace kv::decoder
