// Purpose: a deterministic transformer decoder in integers: embeddings, projections, what follows
// attention, logits. Attention itself is an engine's.
// Contract: pure functions of the weights' seed. Q, K and V are integers of at most 96, exact in
// fp16. What attention gave is multiplied by kOutputSteps and rounded to the nearest integer;
// hidden states are reduced modulo 7, so one step anywhere changes much: equal logits mean equal
// attention. A bonus for likely successors of a token lets a draft model guess right now and then.
// Example:  Hidden x = model.embed(token, position);  model.key(x, layer, out);
//           x = model.after_attention(x, layer, output);  model.logits(x, token);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kv::decoder {

inline constexpr uint32_t kHeads = 2, kKvHeads = 1, kHeadDim = 16;
inline constexpr uint32_t kWidth = kHeads * kHeadDim;
inline constexpr uint32_t kVocabulary = 48;
inline constexpr float kScale = 1.0f / 64;
inline constexpr float kOutputSteps = 4;

using Token = uint32_t;  // below kVocabulary
using Hidden = std::array<int32_t, kWidth>;
using Logits = std::vector<int64_t>;  // [kVocabulary]

class Model {
 public:
  Model(uint64_t seed, uint32_t layers);
  uint32_t layers() const { return static_cast<uint32_t>(layers_.size()); }

  Hidden embed(Token token, int64_t position) const;
  void query(const Hidden& x, uint32_t layer, std::span<float, kWidth> out) const;
  void key(const Hidden& x, uint32_t layer, std::span<float, kHeadDim> out) const;
  void value(const Hidden& x, uint32_t layer, std::span<float, kHeadDim> out) const;
  /// The hidden state below the next layer.
  Hidden after_attention(const Hidden& x, uint32_t layer,
                         std::span<const float, kWidth> output) const;
  /// Of the successor of `token`, whose last hidden state is `x`.
  Logits logits(const Hidden& x, Token token) const;

 private:
  using Matrix = std::vector<int8_t>;  // [rows, kWidth], each -1, 0 or 1
  struct Layer {
    Matrix query, key, value, output, up, down;
  };
  Matrix matrix(uint32_t rows);

  uint64_t seed_, used_ = 0;
  std::vector<Layer> layers_;
  Matrix unembed_;
};

/// The first of the largest.
Token greedy(const Logits& logits);

}  // namespace kv::decoder
