#include "harness/simt/exec/semantics_test/values.h"

#include <algorithm>
#include <map>
#include <string>

#include "harness/core/check.h"
#include "harness/core/philox.h"
#include "harness/simt/exec/semantics_test/real.h"

namespace kv::simt::semantics {
namespace {

using Values = std::vector<uint64_t>;

Values integers(int bits) {
  Values values;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (uint64_t small :
       {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255}) {
    values.push_back(small & mask);
    values.push_back((0 - small) & mask);
  }
  for (int at = 7; at < bits; at = at * 2 + 1) {
    for (int64_t step : {-1, 0, 1}) values.push_back(((uint64_t{1} << at) + uint64_t(step)) & mask);
  }
  for (uint64_t word : {0x5555555555555555u, 0xaaaaaaaaaaaaaaaau, 0x0123456789abcdefu,
                        0xfedcba9876543210u, 0x00ff00ff00ff00ffu}) {
    values.push_back(word & mask);
  }
  return values;
}

/// Zeros, ones, subnormals, limits, infinities, NaNs and ties of a format, with both signs.
Values floats(int exponent_bits, int fraction_bits, bool has_infinity) {
  const uint64_t one = uint64_t((1 << (exponent_bits - 1)) - 1) << fraction_bits;
  const uint64_t unit = uint64_t{1} << fraction_bits;
  const uint64_t top = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  Values magnitudes = {0,
                       1,
                       2,
                       unit / 2,
                       unit - 1,
                       unit,
                       unit + 1,
                       one,
                       one - 1,
                       one + 1,
                       one + unit,
                       one - unit,
                       one + unit / 2,
                       one + unit + unit / 4,
                       one + unit + unit / 2,
                       one + 2 * unit + 1,
                       one + 3 * unit - 1,
                       top - 1,
                       top - unit,
                       top};
  if (has_infinity) {
    magnitudes.insert(magnitudes.end(), {top + 1, top + unit / 2, top + unit - 1});
  } else {
    magnitudes.insert(magnitudes.end(), {top + unit - 1, top + unit - 2});
  }
  Values values;
  const uint64_t sign = uint64_t{1} << (exponent_bits + fraction_bits);
  for (uint64_t magnitude : magnitudes) {
    values.push_back(magnitude);
    values.push_back(magnitude | sign);
  }
  return values;
}

/// What matters when f32 is narrowed or turned to an integer.
Values single() {
  Values values = floats(8, 23, true);
  for (uint32_t bits : {0x3f000000u, 0x3effffffu, 0x40200000u, 0x40600000u,  // 0.5 0.5- 2.5 3.5
                        0x4effffffu, 0x4f000000u, 0x4f7fffffu, 0x4f800000u,  // 2^31, 2^32
                        0x5effffffu, 0x5f000000u, 0x5f7fffffu, 0x5f800000u,  // 2^63, 2^64
                        0x477fe000u, 0x477fefffu, 0x477ff000u, 0x47800000u,  // f16 overflow
                        0x33000000u, 0x33000001u, 0x33800000u, 0x387fe000u,  // f16 subnormals
                        0x387fffffu, 0x3f802000u, 0x3f801000u, 0x3f803000u,  // f16 ties
                        0x3f808000u, 0x3f818000u, 0x3f808001u, 0x7f7f8000u,  // bf16 ties, overflow
                        0x43e00000u, 0x43e80000u, 0x43f00000u, 0x3b000000u,  // e4m3 448, 464, 480
                        0x3a800000u, 0x3a800001u, 0x47600000u, 0x47700000u,  // e4m3, e5m2 limits
                        0x42fe0000u, 0x43000000u, 0x437f0000u, 0x43800000u,  // 127..256
                        0x7e800000u, 0x7f000000u, 0x00200000u, 0x40490fdbu}) {
    values.push_back(bits);
    values.push_back(bits | 0x80000000u);
  }
  return values;
}

Values doubles() {
  Values values = floats(11, 52, true);
  for (uint64_t bits :
       {0x3fe0000000000000u, 0x4004000000000000u, 0x41dfffffffc00000u, 0x41dfffffffe00000u,
        0x41e0000000000000u, 0x41efffffffe00000u, 0x41f0000000000000u, 0x43dfffffffffffffu,
        0x43e0000000000000u, 0x43efffffffffffffu, 0x43f0000000000000u, 0x3ff0000010000000u,
        0x3ff0000030000000u, 0x47efffffe0000000u, 0x47effffff0000000u, 0x3690000000000000u,
        0x36a0000000000000u, 0x380fffffffffffffu}) {
    values.push_back(bits);
    values.push_back(bits | uint64_t{1} << 63);
  }
  return values;
}

/// Each value of `half` beside a few others, so that every one appears in both places.
Values pairs(const Values& half, int bits) {
  Values values;
  for (size_t i = 0; i < half.size(); ++i) {
    values.push_back(half[i] << bits | half[(i * 7 + 3) % half.size()]);
  }
  return values;
}

/// One element of a matrix: a small integer, a number near one, a number of any size, or an edge
/// value; `special` adds infinities and NaNs, rarely, so that they do not drown everything.
uint64_t matrix_element(const Format& f, uint64_t word, bool special) {
  const uint64_t sign = word >> 63 ? f.sign_bit() : 0;
  const uint64_t fraction = (word >> 8) & (f.least_normal() - 1);
  const uint64_t one = uint64_t(f.bias());
  if (special && word % 61 == 0) return sign | f.infinity() | (word >> 50 & 1 ? fraction : 0);
  switch (word >> 60 & 3) {
    case 0:
      return round(f, from_integer(int64_t(word % 17) - 8), Round::kNearest);
    case 1:
      return sign | (one - 1 + (word >> 40 & 1)) << f.fraction_bits | fraction;
    case 2:
      return sign | (one - 4 + (word >> 40) % 8) << f.fraction_bits | fraction;
    default:
      return sign | (word >> 40 & 1 ? fraction : f.least_normal() * (word >> 41 & 1));
  }
}

/// Operands of mma: "m_f16" packs two elements, "m_e4m3" four, "m_tf32" one with 10 fraction bits;
/// "x_..." are the same with infinities and NaNs.
uint64_t matrix_word(std::string_view type, uint64_t index) {
  const bool special = type[0] == 'x';
  const std::string_view name = type.substr(2);
  const Format& f = name == "f16"    ? kF16
                    : name == "bf16" ? kBf16
                    : name == "e4m3" ? kE4m3
                    : name == "e5m2" ? kE5m2
                    : name == "tf32" ? kTf32
                    : name == "f64"  ? kF64
                                     : kF32;
  const Philox philox{.key = 4711};
  uint64_t packed = 0;
  const int count = name == "tf32" || name == "f64" ? 1 : 32 / f.bits();
  for (int i = 0; i < count; ++i) {
    packed |= matrix_element(f, philox.word(uint64_t(i) + name.size() * 8, index), special)
              << (i * f.bits());
  }
  return name == "tf32" ? packed << 13 : packed;
}

Values make_edge_values(std::string_view type) {
  if (type == "pred") return {0, 1};
  if (type[1] == '_') {
    Values values;
    for (uint64_t i = 0; i < 96; ++i) values.push_back(matrix_word(type, i));
    return values;
  }
  if (type == "shift32") {
    return {0,  1,  2,  7,  8,   15,  16,  17,  31,         32,        33,
            47, 63, 64, 65, 127, 128, 255, 256, 0x80000000, 0xffffffff};
  }
  if (type == "f16") return floats(5, 10, true);
  if (type == "bf16") return floats(8, 7, true);
  if (type == "f16x2") return pairs(floats(5, 10, true), 16);
  if (type == "bf16x2") return pairs(floats(8, 7, true), 16);
  if (type == "f32") return single();
  if (type == "f64") return doubles();
  if (type == "b16p") return pairs(integers(8), 8);
  const int bits = std::stoi(std::string(type.substr(1)));
  return integers(bits);
}

}  // namespace

uint32_t operand_bytes(std::string_view type) {
  if (type == "pred") return 0;
  if (type[1] == '_') return type.ends_with("f64") ? 8 : 4;
  if (type == "f16x2" || type == "bf16x2" || type == "shift32") return 4;
  if (type == "bf16" || type == "b16p") return 2;
  const int bits = std::stoi(std::string(type.substr(1)));
  return bits <= 16 ? 2 : uint32_t(bits) / 8;
}

std::vector<uint64_t> edge_values(std::string_view type) {
  static std::map<std::string, Values> known;  // test data: computed once for each type
  Values& values = known[std::string(type)];
  if (values.empty()) {
    values = make_edge_values(type);
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
  }
  return values;
}

uint64_t random_value(std::string_view type, uint64_t index) {
  if (type[1] == '_') return matrix_word(type, index + 96);
  const Philox philox{.key = 20260101};
  const uint64_t word =
      philox.word(type.size() * 131 + uint64_t(type[0]) * 7 + uint64_t(type.back()), index);
  if (type == "pred") return word & 1;
  if (type == "shift32") return word % 70;
  // Half of the f32 and f64 lie near one, where sums and products interact.
  if (type == "f32" && (word >> 40 & 1)) return (word & 0x80ffffff) | 0x3f000000;
  if (type == "f64" && (word & 1)) return (word & 0x800fffffffffffff) | 0x3ff0000000000000;
  if (type == "u8" || type == "s8" || type == "b8") return word & 0xff;
  const uint32_t bytes = operand_bytes(type);
  return bytes == 8 ? word : word & ((uint64_t{1} << (8 * bytes)) - 1);
}

std::vector<std::vector<uint64_t>> operand_tuples(const std::vector<std::string_view>& types,
                                                  uint64_t limit) {
  std::vector<Values> edges;
  uint64_t combinations = 1;
  for (std::string_view type : types) {
    edges.push_back(edge_values(type));
    combinations = std::min(combinations * edges.back().size(), uint64_t{1} << 40);
  }
  std::vector<Values> tuples(types.size());
  const uint64_t taken = std::min(combinations, limit * 3 / 4);
  const Philox philox{.key = 77};
  for (uint64_t i = 0; i < taken; ++i) {
    // All of them in order, or a sample.
    uint64_t rest = combinations <= taken ? i : philox.word(1, i) % combinations;
    for (size_t k = 0; k < types.size(); ++k) {
      tuples[k].push_back(edges[k][rest % edges[k].size()]);
      rest /= edges[k].size();
    }
  }
  const uint64_t random_count = std::max<uint64_t>(limit / 4, 64);
  for (uint64_t i = 0; i < random_count || tuples[0].size() % 32 != 0; ++i) {
    for (size_t k = 0; k < types.size(); ++k) {
      tuples[k].push_back(random_value(types[k], i * types.size() + k));
    }
  }
  KV_CHECK(tuples[0].size() % 32 == 0, "whole warps");
  return tuples;
}

}  // namespace kv::simt::semantics
