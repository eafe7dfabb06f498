#include "harness/minimize/weight.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/case/json.h"
#include "harness/minimize/leaves.h"

namespace kv {
namespace {

uint64_t bits_of(uint64_t distance) { return std::bit_width(distance); }

// Small integers are nearly free; a fraction costs what it takes to write it.
uint64_t bits_of(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const auto mantissa =
      static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  const auto length = static_cast<uint64_t>(53 - std::countr_zero(mantissa));
  return length + static_cast<uint64_t>(std::abs(exponent - 1)) + (value < 0 ? 1 : 0);
}

struct Complexity {
  uint64_t sum = 0;

  template <class T, class Bound>
  void number(const T& member, const schema::Range<Bound>& rule) {
    if constexpr (std::is_floating_point_v<T>) {
      sum += bits_of(static_cast<double>(member) - static_cast<double>(simplest(rule)));
    } else {
      const auto low = static_cast<uint64_t>(simplest(rule));
      const auto value = static_cast<uint64_t>(member);
      sum += bits_of(static_cast<int64_t>(value - low) < 0 && !std::is_unsigned_v<T> ? low - value
                                                                                     : value - low);
    }
  }
  void id(const RequestId& request) { sum += request.value; }
  template <class T>
  void choice(const T& member) {
    if constexpr (std::is_same_v<T, Design>) {
      sum += design_rank(member);
    } else {
      sum += static_cast<uint64_t>(member);
    }
  }
};

}  // namespace

uint32_t design_rank(Design design) {
  constexpr Design kSimplestFirst[] = {
      Design::kConstantValue, Design::kCensus,     Design::kUniformExact,    Design::kDyadic,
      Design::kSubsetSelect,  Design::kSparseCode, Design::kBoundaryNeedles, Design::kAscending,
      Design::kLargeScores,   Design::kNormal};
  const auto* found = std::find(std::begin(kSimplestFirst), std::end(kSimplestFirst), design);
  return static_cast<uint32_t>(found - kSimplestFirst);
}

Weight weight_of(const Case& c) {
  uint64_t rows = 0, requests = 0, slots = 0, queries = 0;
  for (const Op& operation : c.ops) {
    if (std::holds_alternative<op::Admit>(operation)) ++requests;
    const auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    rows += step->rows.size();
    for (const op::StepRow& row : step->rows) {
      slots += uint64_t{row.pad_left} + row.append + row.pad_right;
      queries += row.queries;
    }
  }
  Complexity complexity;
  for_each_leaf(c, complexity);
  const Shape& s = c.shape;
  return {c.ops.size(),
          rows,
          requests,
          s.layers,
          uint64_t{s.query_heads} + s.kv_heads,
          uint64_t{s.head_dim_k} + s.head_dim_v,
          slots,
          queries,
          c.pool.page_count,
          complexity.sum,
          c.pool.page_slots,
          case_to_json(c).size()};
}

}  // namespace kv
