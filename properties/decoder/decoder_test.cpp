// Whole-model statements over kvattn in batch-invariant mode, on the CPU device: logits bit for
// bit, then tokens. Each is broken by a planted bug (faulty_engine_test.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/plugin/runtime.h"
#include "properties/decoder/decode.h"
#include "properties/decoder/faulty_engine_test.h"
#include "properties/engine_plugin.h"

namespace kv::decoder {
namespace {

const std::vector<Token> kPrompt = {7, 31, 2, 2, 40, 11, 5, 19, 23, 8, 0, 47, 13};
constexpr size_t kCount = 12;
const DecoderOptions kWithoutDraft = {.draft_layers = 0};

const kv_engine_level& engine() {
  static const kv_engine_level* level = [] {
    const auto runtime = load_runtime(DeviceKind::kCpu);
    KV_CHECK(runtime.ok(), "the CPU device");
    return props::load_engine(KV_BUILD_DIR "/lib/libkvattn_invariant_plugin.so");
  }();
  KV_CHECK(level != nullptr, "kvattn in batch-invariant mode");
  return *level;
}

template <class Decode>
auto with(const kv_engine_level& level, const DecoderOptions& options, Decode decode) {
  EngineDecoder decoder(level, options);
  return decode(decoder);
}
// Kept: it is what all are held against.
const Transcript& naive(const std::vector<Token>& prompt, size_t count = kCount) {
  static std::map<std::pair<std::vector<Token>, size_t>, Transcript> known;
  const auto [at, is_new] = known.try_emplace({prompt, count});
  if (is_new) {
    at->second = with(engine(), kWithoutDraft,
                      [&](EngineDecoder& d) { return decode_naive(d, prompt, count); });
  }
  return at->second;
}

// Whether the statement holds on an engine with the fault.
template <class Statement>
bool holds(Fault fault, Statement statement) {
  FaultyEngine faulty(engine(), fault);
  return statement(faulty.level());
}

bool cached_is_naive(const kv_engine_level& level) {
  return naive(kPrompt) == with(level, kWithoutDraft,
                                [](EngineDecoder& d) { return decode_cached(d, kPrompt, kCount); });
}
TEST(Decoder, CachedIsNaive) {
  EXPECT_TRUE(holds(Fault::kNone, cached_is_naive));
  EXPECT_FALSE(holds(Fault::kKeyOfTokenBefore, cached_is_naive));
}

bool chunked_is_naive(const kv_engine_level& level) {
  for (const std::vector<size_t>& parts :
       {std::vector<size_t>{1}, std::vector<size_t>{4}, std::vector<size_t>{5, 1, 7}}) {
    const Transcript t = with(level, kWithoutDraft, [&](EngineDecoder& d) {
      return decode_chunked(d, kPrompt, kCount, parts);
    });
    if (t != naive(kPrompt)) return false;
  }
  return true;
}
TEST(Decoder, ChunkedIsNaive) {
  EXPECT_TRUE(holds(Fault::kNone, chunked_is_naive));
  EXPECT_FALSE(holds(Fault::kSecondChunkOffByOne, chunked_is_naive));
}

bool batched_is_alone(const kv_engine_level& level) {
  const std::vector<std::vector<Token>> prompts = {
      kPrompt, {3}, {31, 2, 2, 40, 11, 5, 19, 23, 8}, {7, 31, 2, 1}};
  const auto all = with(level, kWithoutDraft,
                        [&](EngineDecoder& d) { return decode_batched(d, prompts, kCount); });
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (all[i] != naive(prompts[i])) return false;
  }
  return true;
}
TEST(Decoder, InABatchIsAlone) {
  EXPECT_TRUE(holds(Fault::kNone, batched_is_alone));
  EXPECT_FALSE(holds(Fault::kQueryOfRowBefore, batched_is_alone));
}

bool warm_is_cold(const kv_engine_level& level) {
  return with(level, {.draft_layers = 0, .prefix_cache = true}, [](EngineDecoder& d) {
    const Transcript cold = decode_cached(d, kPrompt, kCount);
    const uint64_t projected = d.work().projected;
    const Transcript warm = decode_cached(d, kPrompt, kCount);
    EXPECT_LT(d.work().projected - projected, projected);  // something was found
    return cold == warm && cold == naive(kPrompt);
  });
}
TEST(Decoder, WarmIsCold) {
  EXPECT_TRUE(holds(Fault::kNone, warm_is_cold));
  EXPECT_FALSE(holds(Fault::kPositionAfterHit, warm_is_cold));
}

Speculation speculated(const kv_engine_level& level, uint32_t branches = 0) {
  return with(level, {}, [&](EngineDecoder& d) {
    return decode_speculative(d, kPrompt, 2 * kCount, {.guesses = 3, .branches = branches});
  });
}
bool speculative_is_naive(const kv_engine_level& level) {
  return speculated(level).transcript == naive(kPrompt, 2 * kCount);
}
TEST(Decoder, SpeculativeIsNaive) {
  EXPECT_TRUE(holds(Fault::kNone, speculative_is_naive));
  EXPECT_FALSE(holds(Fault::kStaleAfterRollback, speculative_is_naive));
  const Speculation s = speculated(engine());
  EXPECT_EQ(s.yielded, s.accepted + s.verifies);
  EXPECT_GT(s.accepted, 0u);
  EXPECT_LT(s.accepted, 3 * s.verifies);  // some guesses were rejected
}

// A wrong draft cache makes no wrong token: it is looked at itself.
bool draft_is_fresh(const kv_engine_level& level) {
  const Speculation s = speculated(level);
  for (size_t i = 0; i < s.drafts.size(); ++i) {
    std::vector<Token> tokens = s.draft_prefixes[i];
    const size_t known = tokens.size();
    tokens.insert(tokens.end(), s.drafts[i].tokens.begin(), s.drafts[i].tokens.end() - 1);
    const RowLogits fresh =
        with(engine(), {}, [&](EngineDecoder& d) { return draft_naive(d, tokens); });
    for (size_t g = 0; g < s.drafts[i].logits.size(); ++g) {
      if (s.drafts[i].logits[g] != fresh[known - 1 + g]) return false;
    }
  }
  return true;
}
TEST(Decoder, TheDraftCacheIsRolledBackToo) {
  EXPECT_TRUE(holds(Fault::kNone, draft_is_fresh));
  EXPECT_FALSE(holds(Fault::kStaleDraft, draft_is_fresh));
}

TEST(Decoder, TreesOfGuessesGiveTheSame) {
  const auto is_naive = [](const kv_engine_level& level) {
    return speculated(level, 2).transcript == naive(kPrompt, 2 * kCount);
  };
  EXPECT_TRUE(holds(Fault::kNone, is_naive));
  EXPECT_FALSE(holds(Fault::kTreeAsChain, is_naive));
  EXPECT_FALSE(holds(Fault::kStaleAfterRollback, is_naive));
  const Speculation s = speculated(engine(), 2);
  EXPECT_EQ(s.yielded, s.accepted + s.verifies);
}

Speculation looked(const kv_engine_level& level) {
  return with(level, kWithoutDraft,
              [](EngineDecoder& d) { return decode_lookahead(d, kPrompt, 3 * kCount, {}); });
}
bool lookahead_is_naive(const kv_engine_level& level) {
  return looked(level).transcript == naive(kPrompt, 3 * kCount);
}
TEST(Decoder, LookaheadIsNaive) {
  EXPECT_TRUE(holds(Fault::kNone, lookahead_is_naive));
  EXPECT_FALSE(holds(Fault::kTreeAsChain, lookahead_is_naive));
  EXPECT_FALSE(holds(Fault::kStaleAfterRollback, lookahead_is_naive));
  const Speculation s = looked(engine());
  EXPECT_EQ(s.yielded, s.accepted + s.verifies);
  EXPECT_GT(s.accepted, 0u);
  fmt::print("lookahead: {} steps, {} guesses accepted\n", s.verifies, s.accepted);
}

bool beams_are_recomputed(const kv_engine_level& level) {
  static const Beams fresh = with(
      engine(), kWithoutDraft, [](EngineDecoder& d) { return beams_naive(d, kPrompt, kCount, 3); });
  return fresh == with(level, kWithoutDraft,
                       [](EngineDecoder& d) { return beams_cached(d, kPrompt, kCount, 3); });
}
TEST(Decoder, BeamsWithACacheAreBeamsRecomputed) {
  EXPECT_TRUE(holds(Fault::kNone, beams_are_recomputed));
  EXPECT_FALSE(holds(Fault::kTokensReorderedAlone, beams_are_recomputed));
}

// Counted where the engine asks for Q, K and V.
TEST(Decoder, AHundredTokensTakeThisWork) {
  const auto count = [](auto decode) {
    return with(engine(), kWithoutDraft, [&](EngineDecoder& d) {
      decode(d, std::vector<Token>{5}, 100);
      return d.work();
    });
  };
  const Work again = count(decode_naive), cached = count(decode_cached);
  fmt::print(
      "100 tokens: K/V projections {} naive, {} cached; q.k products for each head and layer "
      "{} naive, {} cached\n",
      again.projected, cached.projected, again.products, cached.products);
  EXPECT_EQ(again.projected, 5050u);
  EXPECT_EQ(cached.projected, 100u);
  EXPECT_EQ(again.products, 171'700u);
  EXPECT_EQ(cached.products, 5050u);
}

}  // namespace
}  // namespace kv::decoder
