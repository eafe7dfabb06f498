#include "properties/decoder/model.h"

#include <algorithm>
#include <cmath>

#include "harness/core/philox.h"

namespace kv::decoder {
namespace {

constexpr uint64_t kEmbeddings = 1, kPositions = 2, kSuccessors = 3, kWeights = 4;  // streams
constexpr int64_t kBonus = 12;  // a rank of a successor; the other logits are about as large

uint64_t word(uint64_t seed, uint64_t stream, uint64_t index) {
  return Philox{seed}.word(stream, index);
}

int32_t reduced(int64_t x) {  // to -3 .. 3
  const int64_t rest = x % 7;
  return static_cast<int32_t>(rest < 0 ? rest + 7 : rest) - 3;
}

int64_t row_product(const std::vector<int8_t>& matrix, uint32_t row, std::span<const int32_t> x) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < kWidth; ++i) sum += int64_t{matrix[row * kWidth + i]} * x[i];
  return sum;
}

void project(const std::vector<int8_t>& matrix, const Hidden& x, std::span<float> out) {
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(row_product(matrix, i, x));
  }
}

}  // namespace

Model::Model(uint64_t seed, uint32_t layers) : seed_(seed) {
  for (uint32_t i = 0; i < layers; ++i) {
    layers_.push_back({matrix(kWidth), matrix(kHeadDim), matrix(kHeadDim), matrix(kWidth),
                       matrix(kWidth), matrix(kWidth)});
  }
  unembed_ = matrix(kVocabulary);
}

Model::Matrix Model::matrix(uint32_t rows) {
  Matrix m(size_t{rows} * kWidth);
  for (int8_t& weight : m) {
    weight = static_cast<int8_t>(static_cast<int>(word(seed_, kWeights, used_++) % 3) - 1);
  }
  return m;
}

Hidden Model::embed(Token token, int64_t position) const {
  Hidden x;
  for (uint32_t i = 0; i < kWidth; ++i) {
    const uint64_t a = word(seed_, kEmbeddings, uint64_t{token} * kWidth + i);
    const uint64_t b = word(seed_, kPositions, static_cast<uint64_t>(position) * kWidth + i);
    x[i] = reduced(static_cast<int64_t>(a % 7 + b % 7));
  }
  return x;
}

void Model::query(const Hidden& x, uint32_t layer, std::span<float, kWidth> out) const {
  project(layers_[layer].query, x, out);
}
void Model::key(const Hidden& x, uint32_t layer, std::span<float, kHeadDim> out) const {
  project(layers_[layer].key, x, out);
}
void Model::value(const Hidden& x, uint32_t layer, std::span<float, kHeadDim> out) const {
  project(layers_[layer].value, x, out);
}

Hidden Model::after_attention(const Hidden& x, uint32_t layer,
                              std::span<const float, kWidth> output) const {
  const Layer& l = layers_[layer];
  Hidden attended, inner, up, out;
  for (uint32_t i = 0; i < kWidth; ++i) {
    const float steps = std::floor(output[i] * kOutputSteps + 0.5f);  // exact: a power of two
    attended[i] = std::isfinite(steps) ? static_cast<int32_t>(std::clamp(steps, -999.f, 999.f)) : 0;
  }
  for (uint32_t i = 0; i < kWidth; ++i)
    inner[i] = reduced(x[i] + row_product(l.output, i, attended));
  for (uint32_t i = 0; i < kWidth; ++i) {
    up[i] = static_cast<int32_t>(std::max<int64_t>(0, row_product(l.up, i, inner)));
  }
  for (uint32_t i = 0; i < kWidth; ++i) out[i] = reduced(inner[i] + row_product(l.down, i, up));
  return out;
}

Logits Model::logits(const Hidden& x, Token token) const {
  Logits logits(kVocabulary);
  for (uint32_t v = 0; v < kVocabulary; ++v) {
    // Of the vocabulary, not of the weights: every model knows the same successors.
    const uint64_t liked = word(0, kSuccessors, uint64_t{token} * kVocabulary + v) % 32;
    logits[v] = row_product(unembed_, v, x) + kBonus * static_cast<int64_t>(liked);
  }
  return logits;
}

Token greedy(const Logits& logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace kv::decoder
