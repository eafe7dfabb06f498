#include "properties/decoder/decode.h"

#include <algorithm>

namespace kv::decoder {
namespace {

constexpr uint32_t kOne = 0;  // the request of what needs no more

void note(Transcript& t, Logits logits) {
  t.tokens.push_back(greedy(logits));
  t.logits.push_back(std::move(logits));
}

// Logits of the last of these tokens, from nothing.
Logits recomputed(EngineDecoder& decoder, const std::vector<Token>& tokens) {
  decoder.admit(kOne, tokens);
  Logits last = decoder.step({{.request = kOne, .append = tokens}})[0].back();
  decoder.cancel(kOne);
  return last;
}

std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Transcript decode_naive(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count) {
  Transcript t;
  for (size_t i = 0; i < count; ++i) note(t, recomputed(decoder, joined(prompt, t.tokens)));
  return t;
}

Transcript decode_cached(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count) {
  return decode_chunked(decoder, prompt, count, {prompt.size()});
}

Transcript decode_chunked(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                          const std::vector<size_t>& parts) {
  Transcript t;
  RowLogits last;
  size_t part = 0, done = decoder.admit(kOne, prompt);
  if (done == prompt.size()) last = decoder.step({{.request = kOne}})[0];
  while (done < prompt.size()) {
    const size_t take = std::min(parts[std::min(part++, parts.size() - 1)], prompt.size() - done);
    const auto from = prompt.begin() + static_cast<ptrdiff_t>(done);
    last =
        decoder.step({{.request = kOne, .append = {from, from + static_cast<ptrdiff_t>(take)}}})[0];
    done += take;
  }
  note(t, last.back());
  while (t.tokens.size() < count) {
    note(t, decoder.step({{.request = kOne, .append = {t.tokens.back()}}})[0][0]);
  }
  decoder.cancel(kOne);
  return t;
}

std::vector<Transcript> decode_batched(EngineDecoder& decoder,
                                       const std::vector<std::vector<Token>>& prompts,
                                       size_t count) {
  constexpr size_t kPart = 7;
  std::vector<Transcript> all(prompts.size());
  std::vector<size_t> done(prompts.size(), 0);
  for (uint32_t i = 0; i < prompts.size(); ++i) decoder.admit(i, prompts[i]);
  while (std::ranges::any_of(all, [&](const Transcript& t) { return t.tokens.size() < count; })) {
    std::vector<DecoderRow> rows;
    for (uint32_t i = 0; i < prompts.size(); ++i) {
      if (all[i].tokens.size() >= count) continue;
      DecoderRow row{.request = i};
      for (; done[i] < prompts[i].size() && row.append.size() < kPart; ++done[i]) {
        row.append.push_back(prompts[i][done[i]]);
      }
      if (row.append.empty()) row.append = {all[i].tokens.back()};
      rows.push_back(std::move(row));
    }
    const std::vector<RowLogits> logits = decoder.step(rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      const uint32_t i = rows[r].request;
      if (done[i] == prompts[i].size()) note(all[i], logits[r].back());
    }
  }
  for (uint32_t i = 0; i < prompts.size(); ++i) decoder.cancel(i);
  return all;
}

RowLogits draft_naive(EngineDecoder& decoder, const std::vector<Token>& tokens) {
  decoder.admit(kOne, tokens);
  RowLogits logits = decoder.step({{.request = kOne, .append = tokens}}, true)[0];
  decoder.cancel(kOne);
  return logits;
}

namespace {

// One candidate for the next place of a beam.
struct Candidate {
  int64_t score = 0;
  uint32_t beam = 0;
  Token token = 0;
};

std::vector<Candidate> best(const std::vector<int64_t>& scores, const std::vector<Logits>& logits,
                            uint32_t width) {
  std::vector<Candidate> all;
  for (uint32_t b = 0; b < logits.size(); ++b) {
    for (Token v = 0; v < kVocabulary; ++v) all.push_back({scores[b] + logits[b][v], b, v});
  }
  std::ranges::stable_sort(all, std::greater<>(), &Candidate::score);
  all.resize(width);
  return all;
}

void extend_beams(Beams& beams, const std::vector<Candidate>& chosen) {
  const std::vector<std::vector<Token>> before = beams.tokens;
  beams.tokens.clear();
  beams.scores.clear();
  for (const Candidate& c : chosen) {
    beams.tokens.push_back(before[c.beam]);
    beams.tokens.back().push_back(c.token);
    beams.scores.push_back(c.score);
  }
}

}  // namespace

Beams beams_cached(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                   uint32_t width) {
  decoder.admit(0, prompt);
  const Logits first = decoder.step({{.request = 0, .append = prompt}})[0].back();
  Beams beams{.tokens = {{}}, .scores = {0}, .logits = {{first}}};
  extend_beams(beams, best(beams.scores, beams.logits.back(), width));
  for (uint32_t b = 1; b < width; ++b) decoder.fork(0, b);
  for (size_t i = 1; i < count; ++i) {
    std::vector<DecoderRow> rows;
    for (uint32_t b = 0; b < width; ++b) {
      rows.push_back({.request = b, .append = {beams.tokens[b].back()}});
    }
    std::vector<Logits> logits;
    for (const RowLogits& row : decoder.step(rows)) logits.push_back(row[0]);
    beams.logits.push_back(logits);
    const std::vector<Candidate> chosen = best(beams.scores, logits, width);
    std::vector<uint32_t> ids, sources;
    for (uint32_t b = 0; b < width; ++b) {
      ids.push_back(b);
      sources.push_back(chosen[b].beam);
    }
    decoder.reorder(ids, sources);
    extend_beams(beams, chosen);
  }
  for (uint32_t b = 0; b < width; ++b) decoder.cancel(b);
  return beams;
}

Beams beams_naive(EngineDecoder& decoder, const std::vector<Token>& prompt, size_t count,
                  uint32_t width) {
  Beams beams{.tokens = {{}}, .scores = {0}, .logits = {}};
  for (size_t i = 0; i < count; ++i) {
    std::vector<Logits> logits;
    for (const auto& tokens : beams.tokens) {
      logits.push_back(recomputed(decoder, joined(prompt, tokens)));
    }
    beams.logits.push_back(logits);
    extend_beams(beams, best(beams.scores, logits, width));
  }
  return beams;
}

}  // namespace kv::decoder
