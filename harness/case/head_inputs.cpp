#include "harness/case/head_inputs.h"

#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr uint64_t kSlopeUse = 0x736c6f7065, kSinkUse = 0x73696e6b;  // "slope", "sink"

uint64_t word(const Case& c, HeadPlace where, uint64_t use) {
  return Philox{c.data.seed ^ use}.word(where.layer, where.head);
}

}  // namespace

float alibi_slope(const Case& c, HeadPlace where) {
  const uint64_t w = word(c, where, kSlopeUse);
  const float mantissa = 1.0f - static_cast<float>(w % 128) / 256;
  return mantissa / static_cast<float>(1u << (w >> 32) % 9);
}

float sink_logit(const Case& c, HeadPlace where) {
  return static_cast<float>(word(c, where, kSinkUse) % (12 * 64)) / 64 - 2;
}

}  // namespace kv
