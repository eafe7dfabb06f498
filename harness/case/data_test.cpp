#include "harness/case/data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "harness/case/fixed_row.h"
#include "harness/case/random_words.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr auto kQ = TensorRole::kQuery;
constexpr auto kK = TensorRole::kKey;
constexpr auto kV = TensorRole::kValue;

std::vector<double> row_of(const Case& c, const RowAddress& where, const Slot& slot) {
  const DType type = tensor_dtype(c.shape, where.role);
  std::vector<std::byte> bytes(row_bytes(c.shape, where.role));
  fill_row(c, where, slot, bytes);
  std::vector<double> values;
  for (size_t i = 0; i < bytes.size(); i += dtype_bytes(type)) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i], dtype_bytes(type));
    values.push_back(decode(type, bits));
  }
  return values;
}

Case with_design(Design design) {
  Case c;
  c.shape.query_heads = 4;
  c.shape.kv_heads = 2;
  c.data.design = design;
  c.data.seed = 1;
  return c;
}

// The first `count` tokens of request 0.
std::vector<Slot> tokens(const Case& c, uint32_t count) {
  Streams streams(c.data.seed);
  streams.admit({.request = RequestId(0)});
  std::vector<Slot> slots;
  uint64_t previous = 0;
  streams.extend(RequestId(0), 0, count, streams.root(RequestId(0)), [&](uint64_t history) {
    slots.push_back(
        {.history = history, .position = static_cast<int64_t>(slots.size()), .previous = previous});
    previous = history;
  });
  return slots;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(FixedRow, EveryEncodingRoundsOnceToNearestEven) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    for (int exponent = 0; exponent <= 12; ++exponent) {
      FixedRow row;
      row.size = 1024;
      row.exponent = exponent;
      const uint32_t bytes = dtype_bytes(type);
      std::vector<std::byte> out(row.size * bytes);
      for (uint32_t pass = 0; pass < 48; ++pass) {
        for (uint32_t i = 0; i < row.size; ++i) {
          // All magnitudes: a 24-bit word shifted by 0 to 23; small passes walk the smallest.
          const uint32_t w = Philox{9}.block(pass, i)[0];
          const auto magnitude =
              static_cast<int32_t>(pass < 4 ? pass * 1024 + i : (w >> 8) >> (w % 24));
          const int32_t limit = exponent == 12 ? 30000 << 9 : 1 << 24;
          row.fixed[i] = std::min(magnitude, limit) * (w & 1 << 7 ? -1 : 1);
        }
        encode_row(row, type, out);
        for (uint32_t i = 0; i < row.size; ++i) {
          uint32_t got = 0;
          std::memcpy(&got, &out[size_t{i} * bytes], bytes);
          const double exact = std::ldexp(row.fixed[i], exponent - FixedRow::kFractionBits);
          ASSERT_EQ(got, encode_saturating(type, exact))
              << dtype_name(type) << " of " << exact << " with exponent " << exponent;
        }
        if (type != DType::kF16) continue;
        std::vector<std::byte> portable(out.size());
        encode_f16_portably(row, portable);
        ASSERT_EQ(portable, out) << "exponent " << exponent;
      }
    }
  }
}

TEST(RandomWords, WordsAreThoseOfPhilox) {
  for (const Cpu cpu : {Cpu::kPortable, Cpu::kAvx2, Cpu::kAvx512}) {
    if (cpu > best_cpu()) continue;
    std::vector<uint32_t> words(96);
    random_words(0x123456789abcdef0, words, cpu);
    for (uint32_t i = 0; i < words.size(); ++i) {
      const uint32_t group = i / 32, word = i % 32 / 8, lane = i % 8;
      EXPECT_EQ(words[i], (Philox{0x123456789abcdef0}.block(0, group * 8 + lane)[word]))
          << i << ", cpu " << static_cast<int>(cpu);
    }
  }
}

TEST(Data, DependsOnEveryPartOfTheAddress) {
  const Case c = with_design(Design::kNormal);
  const Slot slot = tokens(c, 3)[2];
  const RowAddress base{.role = kK, .layer = 1, .head = 1};
  const auto row = row_of(c, base, slot);
  EXPECT_EQ(row, row_of(c, base, slot));
  EXPECT_EQ(row, row_of(c, {.role = kK, .slot = 9, .layer = 1, .head = 1, .kv_length = 5}, slot))
      << "the slot index and the length of the moment must not matter";
  EXPECT_NE(row, row_of(c, {.role = kV, .layer = 1, .head = 1}, slot));
  EXPECT_NE(row, row_of(c, {.role = kK, .layer = 0, .head = 1}, slot));
  EXPECT_NE(row, row_of(c, {.role = kK, .layer = 1, .head = 0}, slot));
  EXPECT_NE(row, row_of(c, base, tokens(c, 2)[1]));
  Slot elsewhere = slot;
  elsewhere.position = 7;
  EXPECT_NE(row, row_of(c, base, elsewhere));
}

TEST(Data, NormalRowsHaveMeanZeroVarianceOneAndFullMantissas) {
  Case c = with_design(Design::kNormal);
  c.shape.query_dtype = DType::kF32;
  double sum = 0, squares = 0;
  uint32_t odd = 0, count = 0;
  for (const Slot& slot : tokens(c, 500)) {
    for (const double x : row_of(c, {.role = kQ}, slot)) {
      sum += x;
      squares += x * x;
      odd += static_cast<int64_t>(std::ldexp(x, 21)) & 1;
      ++count;
    }
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(double(odd) / count, 0.5, 0.02);
}

TEST(Data, UniformExactSumsTelescopeOverAnyRun) {
  const Case c = with_design(Design::kUniformExact);
  const auto slots = tokens(c, 200);
  for (const double x : row_of(c, {.role = kQ}, slots[4])) EXPECT_EQ(x, 0);
  std::vector<std::vector<double>> prefix{std::vector<double>(64, 0)};
  for (const Slot& slot : slots) {
    auto sums = prefix.back();
    const auto row = row_of(c, {.role = kV}, slot);
    bool any = false;
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(row[i], std::nearbyint(row[i]));
      any = any || row[i] != 0;
      sums[i] += row[i];
    }
    EXPECT_TRUE(any) << "a key whose loss shows nowhere";
    prefix.push_back(sums);
  }
  for (size_t a = 0; a < prefix.size(); a += 3) {
    for (size_t b = a; b < prefix.size(); b += 7) {
      for (size_t i = 0; i < 64; ++i) ASSERT_LE(std::abs(prefix[b][i] - prefix[a][i]), 6);
    }
  }
}

TEST(Data, SparseCodeWritesOneColumnOfEachRow) {
  const Case c = with_design(Design::kSparseCode);
  const auto slots = tokens(c, 70);
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto row = row_of(c, {.role = kV}, slots[i]);
    for (size_t column = 0; column < row.size(); ++column) {
      const double magnitude = std::abs(row[column]);
      if (column == i % 64) {
        EXPECT_TRUE(magnitude >= 1 && magnitude <= 1.5);
      } else {
        EXPECT_EQ(magnitude, 0);
      }
    }
  }
}

TEST(Data, NeedlesStandAtTheEdgesOfWhatAQuerySees) {
  const Case c = with_design(Design::kBoundaryNeedles);
  const auto slots = tokens(c, 300);
  const int64_t at = 200;
  const auto query = row_of(c, {.role = kQ}, slots[at]);
  for (int64_t i = 0; i < 300; ++i) {
    const double score = dot(query, row_of(c, {.role = kK}, slots[i])) * c.shape.scale;
    if (i == 0 || i == at || i == at + 1) {
      EXPECT_GT(score, 8) << i;
    } else {
      EXPECT_LT(score, 7) << i;  // at most one digit of the code in common
    }
  }
}

TEST(Data, AscendingScoresGrowFromTileToTile) {
  const Case c = with_design(Design::kAscending);
  const auto slots = tokens(c, 1024);
  const auto query = row_of(c, {.role = kQ, .head = 3}, slots[1023]);
  double last = -1e9;
  for (size_t tile = 0; tile < slots.size(); tile += 64) {
    double tile_max = -1e9;
    for (size_t i = tile; i < tile + 64; ++i) {
      tile_max = std::max(tile_max, dot(query, row_of(c, {.role = kK, .head = 1}, slots[i])));
    }
    EXPECT_GT(tile_max * c.shape.scale, last + 1) << tile;
    last = tile_max * c.shape.scale;
  }
}

TEST(Data, SubsetSelectGivesProbabilitiesZeroAndOne) {
  const Case c = with_design(Design::kSubsetSelect);
  const auto slots = tokens(c, 40);
  const auto query = row_of(c, {.role = kQ}, slots[21]);
  for (size_t i = 0; i < slots.size(); ++i) {
    const double score = dot(query, row_of(c, {.role = kK}, slots[i])) * c.shape.scale;
    if (i % 8 == 21 % 8) {
      EXPECT_EQ(score, 0);
    } else {
      EXPECT_LE(score, -64);
    }
  }
}

TEST(Data, DyadicScoresAreSmallIntegersWithAZeroInEveryTile) {
  const Case c = with_design(Design::kDyadic);
  const auto slots = tokens(c, 64);
  const auto query = row_of(c, {.role = kQ}, slots[50]);
  for (size_t i = 0; i < slots.size(); ++i) {
    const double score = dot(query, row_of(c, {.role = kK}, slots[i]));
    EXPECT_TRUE(score == std::nearbyint(score) && score <= 0 && score >= -6);
    if (i % 16 == 0) {
      EXPECT_EQ(score, 0);
    }
  }
}

TEST(Data, CensusValuesTellPositionsApart) {
  const Case c = with_design(Design::kCensus);
  std::set<std::vector<double>> seen;
  for (const Slot& slot : tokens(c, 29 * 31)) seen.insert(row_of(c, {.role = kV}, slot));
  EXPECT_EQ(seen.size(), 29u * 31u);
}

TEST(Data, ConstantValueIsOneAndLargeScoresAreLarge) {
  const Case ones = with_design(Design::kConstantValue);
  for (const double x : row_of(ones, {.role = kV}, tokens(ones, 1)[0])) EXPECT_EQ(x, 1);
  const Case large = with_design(Design::kLargeScores);
  double squares = 0;
  for (const double x : row_of(large, {.role = kQ}, tokens(large, 1)[0])) squares += x * x / 64;
  EXPECT_GT(squares, 30);
}

TEST(Data, PadSlotsAreLoudButFinite) {
  for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
    Case c = with_design(Design::kNormal);
    c.shape.query_dtype = c.shape.kv_dtype = type;
    const Slot pad{.pad = true, .history = 5};
    for (const double x : row_of(c, {.role = kK}, pad)) {
      EXPECT_TRUE(std::abs(x) >= 64 && std::abs(x) <= 128);
    }
    for (const double x : row_of(c, {.role = kV}, pad)) EXPECT_NEAR(x, 3e4, 100);
    for (const double x : row_of(c, {.role = kQ}, pad)) EXPECT_LT(std::abs(x), 4);
  }
}

TEST(Data, QueryRowsWithoutATokenHaveAnIdentityOfTheirOwn) {
  const Case c = with_design(Design::kNormal);
  const auto a = row_of(c, {.role = kQ, .request = RequestId(0), .query_slot = -1}, {});
  EXPECT_NE(a, row_of(c, {.role = kQ, .request = RequestId(0), .query_slot = -2}, {}));
  EXPECT_NE(a, row_of(c, {.role = kQ, .request = RequestId(1), .query_slot = -1}, {}));
}

TEST(Data, OverridesReplaceSingleElements) {
  Case c = with_design(Design::kNormal);
  const Slot slot = tokens(c, 1)[0];
  const RowAddress where{.role = kV, .slot = 2, .head = 1};
  auto want = row_of(c, where, slot);
  c.data.overrides = {{.tensor = 1, .slot = 2, .head = 1, .dim = 3, .value = 9},
                      {.tensor = 2, .slot = 2, .head = 1, .dim = 3, .value = 5},
                      {.tensor = 2, .slot = 2, .head = 1, .dim = 63, .value = -0.0},
                      {.tensor = 2, .slot = 3, .head = 1, .dim = 3, .value = 7}};
  want[3] = 5;
  want[63] = -0.0;
  EXPECT_EQ(row_of(c, where, slot), want);
}

// Golden: these bytes are part of what a case file means. A change needs a new data.version.
TEST(Data, TheDigestOfAKnownCaseIsThis) {
  Case c = with_design(Design::kNormal);
  c.ops = {
      op::Admit{.request = RequestId(0)},
      op::Step{.rows = {{.request = RequestId(0), .append = 40, .pad_left = 2, .queries = 44}}}};
  const uint64_t digest = input_digest(c);
  EXPECT_EQ(digest, 11750961909909594208u);
  c.data.seed = 2;
  EXPECT_NE(input_digest(c), digest);
}

TEST(Data, BytesOfASlotCountVOnceWhereItLiesInK) {
  Shape shape{.kv_heads = 2, .head_dim_k = 576, .head_dim_v = 512, .kv_dtype = DType::kBf16};
  EXPECT_EQ(slot_bytes(shape), 2u * (576 + 512) * 2);
  shape.value_in_key = true;
  EXPECT_EQ(slot_bytes(shape), 2u * 576 * 2);
}

}  // namespace
}  // namespace kv
