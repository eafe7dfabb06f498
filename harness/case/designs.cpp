#include "harness/case/designs.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/case/data_view.h"
#include "harness/case/random_words.h"
#include "harness/core/philox.h"
#include "harness/core/wide.h"

namespace kv {
namespace {

constexpr int32_t kOne = FixedRow::kOne;

// One random word for each element.
struct Words {
  explicit Words(uint64_t key, uint32_t size) {
    const uint32_t groups = (size + FixedRow::kGroup - 1) / FixedRow::kGroup;
    random_words(key, {word.data(), size_t{groups} * FixedRow::kGroup});
  }
  std::array<uint32_t, limits::kHeadDimMax> word;
};

// Everything that tells one row of one tensor from all others.
uint64_t row_key(const RowAddress& where, uint64_t history, int64_t position) {
  const uint64_t place =
      uint64_t{static_cast<uint8_t>(where.role)} << 60 | uint64_t{where.layer} << 32 | where.head;
  return Philox{history}.word(static_cast<uint64_t>(position), place);
}

// Position ids may be negative; digits of position codes are not.
uint32_t digit(int64_t position, uint32_t base) {
  const int64_t remainder = position % base;
  return static_cast<uint32_t>(remainder < 0 ? remainder + base : remainder);
}

// Nearly normal with mean 0 and variance 1: the sum of three 10-bit uniforms in steps of 2^-9, and
// between the steps 12 more bits hashed from the same word, so that fp32 mantissas are full.
// Bounded by 3.0; excess kurtosis -0.4 (three uniforms).
inline int32_t normal(uint32_t w) {
  const auto sum = static_cast<int32_t>((w & 1023) + (w >> 10 & 1023) + (w >> 20 & 1023));
  const auto low = static_cast<int32_t>((w * 129) >> 20);
  return (2 * sum - 3069) * 2048 + low - 2048;
}

// Uniform integer in [-limit, limit].
inline int32_t small_integer(uint32_t w, uint32_t limit) {
  return static_cast<int32_t>((w >> 16) * (2 * limit + 1) >> 16) - static_cast<int32_t>(limit);
}

void fill(FixedRow& row, int32_t value) { std::fill_n(row.fixed.begin(), row.size, value); }

// Whole groups: a row has room for its last one.
KV_WIDE void to_normal(const uint32_t* __restrict words, int shift, uint32_t groups,
                       int32_t* __restrict fixed) {
  for (uint32_t i = 0; i < groups * FixedRow::kGroup; ++i) fixed[i] = normal(words[i]) >> shift;
}

// 2^-shift times a normal row.
void normal_row(uint64_t key, int shift, FixedRow& row) {
  const Words words(key, row.size);
  const uint32_t groups = (row.size + FixedRow::kGroup - 1) / FixedRow::kGroup;
  to_normal(words.word.data(), shift, groups, row.fixed.data());
}

void integer_row(uint64_t key, uint32_t limit, FixedRow& row) {
  const Words words(key, row.size);
  for (uint32_t i = 0; i < row.size; ++i) {
    row.fixed[i] = small_integer(words.word[i], limit) * kOne;
  }
}

// V of a token is S(token) - S(token before it), with S in [-3, 3]: over any run of tokens the sum
// telescopes to at most 6 in magnitude, however long the run and however it is chunked, so that
// one lost key is not drowned by the others; and all sums are exact.
void telescoping_row(const RowAddress& where, const Slot& slot, FixedRow& row) {
  integer_row(row_key(where, slot.history, slot.position), 3, row);
  if (slot.previous == 0) return;
  const Words before(row_key(where, slot.previous, slot.position - 1), row.size);
  for (uint32_t i = 0; i < row.size; ++i) {
    row.fixed[i] -= small_integer(before.word[i], 3) * kOne;
  }
}

// The position in two digits of coprime bases (for even quarters of the dimension), each digit one
// column: base-a digits in columns [0, a), base-b digits in [a, a + b); the last column is the
// first key's own. Needs 8 columns.
struct PositionCode {
  explicit PositionCode(uint32_t columns) : base_a(columns / 2 - 3), base_b(columns / 2 - 1) {}
  uint32_t column_a(int64_t position) const { return digit(position, base_a); }
  uint32_t column_b(int64_t position) const { return base_a + digit(position, base_b); }
  uint32_t base_a, base_b;
};
constexpr uint32_t kPositionCodeColumnsMin = 8;

// A weight histogram can be read off the output: which positions were seen, and how often.
void census_value(const Slot& slot, FixedRow& row) {
  if (row.size < kPositionCodeColumnsMin) return fill(row, kOne);
  const PositionCode code(row.size);
  fill(row, 0);
  row.fixed[code.column_a(slot.position)] = kOne;
  row.fixed[code.column_b(slot.position)] = kOne;
  if (slot.previous == 0) row.fixed[row.size - 1] = kOne;
}

// One element of +-[1, 1.5) in the column that the position names.
void sparse_value(uint64_t key, const Slot& slot, FixedRow& row) {
  const uint32_t w = Philox{key}.block(0, 0)[0];
  const auto magnitude = static_cast<int32_t>(kOne + (w >> 12));
  fill(row, 0);
  row.fixed[digit(slot.position, row.size)] = w & 1 ? -magnitude : magnitude;
}

// Amplitude in fixed point such that amplitude * 8 * matches * scale is `score`.
int32_t needle_amplitude(float scale, double score, uint32_t matches) {
  const double magnitude = scale < 0 ? -double{scale} : double{scale};
  const double wanted = score / (8.0 * matches * std::max(magnitude, 1e-3));
  const double fixed = std::min(wanted, 128.0) * kOne / 32;  // rows of exponent 5
  return static_cast<int32_t>(scale < 0 ? -fixed : fixed);
}

// Keys: 8 in the columns of their position's code, an eighth of a normal elsewhere.
void needle_key(uint64_t key, const Slot& slot, FixedRow& row) {
  row.exponent = 2;
  normal_row(key, 5, row);
  const PositionCode code(row.size);
  row.fixed[code.column_a(slot.position)] = 2 * kOne;
  row.fixed[code.column_b(slot.position)] = 2 * kOne;
  row.fixed[row.size - 1] = slot.previous == 0 ? 2 * kOne : 0;
}

// Queries look for the edges of what they may see: the first key, the last allowed, the first
// masked one, and both sides of the window's edge, with scores of 9 to 10.5.
void needle_query(const Case& c, uint64_t key, const Slot& slot, FixedRow& row) {
  row.exponent = 5;
  normal_row(key, 8, row);
  const PositionCode code(row.size);
  // A view that multiplies K by a power of two, and the scale by its inverse, leaves Q alone.
  const float scale = std::ldexp(c.shape.scale, static_cast<int>(c.data.view.key_exponent));
  const auto look_for = [&](int64_t position, double score) {
    const int32_t amplitude = needle_amplitude(scale, score, 2);
    row.fixed[code.column_a(position)] = amplitude;
    row.fixed[code.column_b(position)] = amplitude;
  };
  if (c.mask.window_left >= 0) {
    look_for(slot.position - c.mask.window_left, 9.0);
    look_for(slot.position - c.mask.window_left - 1, 10.0);
  }
  look_for(slot.position + 1, 10.5);
  look_for(slot.position, 9.5);
  row.fixed[row.size - 1] = needle_amplitude(scale, 9.0, 1);
}

// Scores rise by about a sixteenth for each position, for 8,192 positions, then start again:
// keys and queries lie along one direction of signs, which the layer and head choose.
void ascending_row(const Case& c, const RowAddress& where, uint64_t key, const Slot& slot,
                   FixedRow& row) {
  const uint32_t group = design_group(c);
  const uint64_t kv_head = where.role == TensorRole::kQuery ? where.head / group : where.head;
  const Words signs(Philox{c.data.seed}.word(uint64_t{where.layer} << 32 | kv_head, 0x617363),
                    row.size);
  row.exponent = 4;
  normal_row(key, 7, row);
  const bool is_key = where.role == TensorRole::kKey;
  // q.k * scale = size * 1 * (position / 128) / 8 for the usual scale 1/8 and 64 dimensions.
  const int32_t along =
      is_key ? static_cast<int32_t>(digit(slot.position, 8192)) * (kOne >> 11) : kOne >> 4;
  for (uint32_t i = 0; i < row.size; ++i) row.fixed[i] += signs.word[i] & 1 ? -along : along;
}

// P is a power of two for every running maximum when the scale is ln 2: integer scores 0 to -6,
// the first key and every 16th at 0.
void dyadic_key(uint64_t key, const Slot& slot, FixedRow& row) {
  if (slot.previous == 0 || digit(slot.position, 16) == 0) return fill(row, 0);
  const Words words(key, row.size);
  for (uint32_t i = 0; i < row.size; ++i) {
    row.fixed[i] = -static_cast<int32_t>((words.word[i] >> 16) * 7 >> 16) * kOne;
  }
}

// The query at position p selects the keys at positions congruent to p modulo 8.
uint32_t subsets(const FixedRow& row) { return std::min<uint32_t>(8, row.size); }

void subset_key(const Case& c, const Slot& slot, FixedRow& row) {
  // The smallest power of two that hides a key: hidden * scale >= 64, at most 2^12.
  row.exponent = 3;
  while (row.exponent < 12 && (1 << row.exponent) * double{c.shape.scale} < 64.0) ++row.exponent;
  const uint32_t own = digit(slot.position, subsets(row));
  fill(row, 0);
  for (uint32_t i = 0; i < subsets(row); ++i) {
    if (i != own) row.fixed[i] = -kOne;
  }
}

void one_hot_query(uint32_t column, FixedRow& row) {
  fill(row, 0);
  row.fixed[column] = kOne;
}

void query_row(const Case& c, const RowAddress& where, uint64_t key, const Slot& slot,
               FixedRow& row) {
  switch (c.data.design) {
    case Design::kUniformExact:
    case Design::kCensus:
      return fill(row, 0);
    case Design::kDyadic:
      return one_hot_query(digit(slot.position, row.size), row);
    case Design::kSubsetSelect:
      return one_hot_query(digit(slot.position, subsets(row)), row);
    case Design::kBoundaryNeedles:
      if (row.size >= kPositionCodeColumnsMin) return needle_query(c, key, slot, row);
      break;
    case Design::kAscending:
      return ascending_row(c, where, key, slot, row);
    case Design::kLargeScores:
      row.exponent = 3;
      break;
    case Design::kNormal:
    case Design::kSparseCode:
    case Design::kConstantValue:
      break;
  }
  normal_row(key, 0, row);
}

void key_row(const Case& c, const RowAddress& where, uint64_t key, const Slot& slot,
             FixedRow& row) {
  switch (c.data.design) {
    case Design::kDyadic:
      return dyadic_key(key, slot, row);
    case Design::kSubsetSelect:
      return subset_key(c, slot, row);
    case Design::kBoundaryNeedles:
      if (row.size >= kPositionCodeColumnsMin) return needle_key(key, slot, row);
      break;
    case Design::kAscending:
      return ascending_row(c, where, key, slot, row);
    default:
      break;
  }
  normal_row(key, 0, row);
}

void value_row(const Case& c, const RowAddress& where, uint64_t key, const Slot& slot,
               FixedRow& row) {
  switch (c.data.design) {
    case Design::kUniformExact:
      return telescoping_row(where, slot, row);
    case Design::kDyadic:
    case Design::kSubsetSelect:
      return integer_row(key, 7, row);
    case Design::kSparseCode:
    case Design::kBoundaryNeedles:  // else nothing but the needles would show
      return sparse_value(key, slot, row);
    case Design::kCensus:
      return census_value(slot, row);
    case Design::kConstantValue:
      return fill(row, kOne);
    default:
      return normal_row(key, 0, row);
  }
}

}  // namespace

void design_row(const Case& c, const RowAddress& where, const Slot& slot, FixedRow& row) {
  const uint64_t key = row_key(where, slot.history, slot.position);
  row.exponent = 0;
  switch (where.role) {
    case TensorRole::kQuery:
      return query_row(c, where, key, slot, row);
    case TensorRole::kKey:
      return key_row(c, where, key, slot, row);
    case TensorRole::kValue:
      return value_row(c, where, key, slot, row);
  }
}

void canary_row(const RowAddress& where, const Slot& slot, FixedRow& row) {
  if (where.role == TensorRole::kValue) {
    row.exponent = 12;
    return fill(row, 30000 << (FixedRow::kFractionBits - 12));
  }
  // +-64 to 128 in every dimension.
  row.exponent = 6;
  const Words words(row_key(where, slot.history, slot.position), row.size);
  for (uint32_t i = 0; i < row.size; ++i) {
    const auto magnitude = static_cast<int32_t>(kOne + (words.word[i] >> 11));
    row.fixed[i] = words.word[i] & 1 ? -magnitude : magnitude;
  }
}

}  // namespace kv
