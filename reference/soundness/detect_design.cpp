#include "reference/soundness/detect_design.h"

#include <algorithm>
#include <cmath>

#include "reference/soundness/draw.h"

namespace kv::reference {
namespace {

constexpr float kLn2 = 0.693147180559945309417f;

class Designer {
 public:
  Designer(TestHead& head, uint64_t seed) : h_(head), draw_(seed ^ 0x64657369676e) {}

  void apply(DetectDesign design) {
    switch (design) {
      case DetectDesign::kNormal:
      case DetectDesign::kLargeScores:
      case DetectDesign::kTinyQuery:
        return;  // the size of the query says it all
      case DetectDesign::kHeavyTail:
        return values([&](uint32_t, uint32_t) { return heavy(); });
      case DetectDesign::kNeedle:
        for (uint32_t r = 0; r < rows(); ++r) aim(r, below(keys()), 18);
        return;
      case DetectDesign::kCancellingValues:
        return values([&](uint32_t i, uint32_t) { return (i % 2 ? -50 : 50) + draw_.normal(); });
      case DetectDesign::kSparseCode:
        return sparse_code();
      case DetectDesign::kUniform:
        std::fill(h_.query.begin(), h_.query.end(), 0.0);
        return integers_summing_to_nothing(1);
      case DetectDesign::kDyadic:
        powers_of_two();
        return values([&](uint32_t, uint32_t) { return static_cast<double>(below(15)) - 7; });
      case DetectDesign::kDyadicSparse:
        powers_of_two();
        return values([&](uint32_t i, uint32_t j) {
          return i % dim() == j ? static_cast<double>(1 + below(7)) : 0;
        });
      case DetectDesign::kSubsetSelect:
        select_subsets();
        return integers_summing_to_nothing(rows());
      case DetectDesign::kBoundaryNeedles:
        for (uint32_t r = 0; r < rows(); ++r) {
          aim(r, r, 9);
          aim(r, keys() - 1 - r, 9.5);
        }
        return sparse_code();  // else nothing but the needles would show
      case DetectDesign::kAscending:
        for (uint32_t i = 0; i < keys(); ++i) aim(0, i, 8.0 * i / keys() + 0.1 * draw_.normal());
        return;
    }
  }

 private:
  uint32_t rows() const { return h_.options.rows; }
  uint32_t keys() const { return h_.options.slots; }
  uint32_t dim() const { return h_.options.dim_k; }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(draw_.below(n)); }
  double code() { return (draw_.one_in(2) ? 1 : -1) * (1 + draw_.uniform() / 2); }
  // A normal number over the root of a uniform one: about as heavy as Student's t with 2 degrees.
  double heavy() { return draw_.normal() / std::sqrt(draw_.uniform() + 0x1p-16); }

  template <class Value>
  void values(Value value) {
    for (uint32_t i = 0; i < keys(); ++i) {
      for (uint32_t j = 0; j < dim(); ++j) h_.set(h_.value[i * dim() + j], value(i, j));
    }
  }

  void sparse_code() {
    values([&](uint32_t i, uint32_t j) { return i % dim() == j ? code() : 0; });
  }

  // K of `slot` along the row's query.
  void aim(uint32_t row, uint32_t slot, double score) {
    const double* q = &h_.query[row * dim()];
    double square = 0;
    for (uint32_t c = 0; c < dim(); ++c) square += q[c] * q[c];
    for (uint32_t c = 0; c < dim(); ++c) {
      h_.set(h_.key[slot * dim() + c], score / (h_.options.scale * square) * q[c]);
    }
  }

  // v = S(i + period) - S(i): sums over keys of one residue telescope.
  void integers_summing_to_nothing(uint32_t period) {
    const Philox random{.key = h_.options.seed};
    const auto s = [&](uint64_t at, uint32_t j) {
      return static_cast<double>(random.word(9 + j, at) % 7) - 3;
    };
    values([&](uint32_t i, uint32_t j) { return s(i + period, j) - s(i, j); });
  }

  // Integer scores times ln 2; one key in sixteen, and both ends, have the largest.
  void powers_of_two() {
    h_.options.scale = kLn2;
    one_hot_queries();
    for (uint32_t i = 0; i < keys(); ++i) {
      const bool anchor = i % 16 == 0 || i + 16 > keys();
      for (uint32_t c = 0; c < dim(); ++c) {
        h_.set(h_.key[i * dim() + c], anchor ? 0 : -static_cast<double>(below(7)));
      }
    }
  }

  // What a row does not select weighs exp(-128), which is 0 in fp32; a format of 8 bits ends
  // before that, and there it is 0 among P's own numbers.
  void select_subsets() {
    one_hot_queries();
    const double hidden_score = dtype_bytes(h_.options.kv()) == 1 ? -64 : -128;
    for (uint32_t i = 0; i < keys(); ++i) {
      for (uint32_t c = 0; c < dim(); ++c) {
        const bool hidden = c < rows() && i % rows() != c;
        h_.set(h_.key[i * dim() + c], hidden ? hidden_score / h_.options.scale : 0);
      }
    }
  }

  void one_hot_queries() {
    std::fill(h_.query.begin(), h_.query.end(), 0.0);
    for (uint32_t r = 0; r < rows(); ++r) h_.query[r * dim() + r % dim()] = 1;
  }

  TestHead& h_;
  Draw draw_;
};

double query_size(DetectDesign design) {
  if (design == DetectDesign::kLargeScores) return 8;
  return design == DetectDesign::kTinyQuery ? 0.004 : 1;
}

}  // namespace

std::string_view design_name(DetectDesign design) {
  constexpr std::string_view names[kDetectDesigns] = {
      "normal",        "heavy tail",       "large scores",      "needle", "cancelling",
      "tiny query",    "sparse code",      "uniform, zero sum", "dyadic", "dyadic and sparse",
      "subset select", "boundary needles", "ascending"};
  return names[static_cast<size_t>(design)];
}

TestHead detect_head(DetectDesign design, DType type, const DetectSize& size, uint64_t seed) {
  TestHead head({.rows = size.rows,
                 .slots = size.keys,
                 .dim_k = size.dim,
                 .dim_v = size.dim,
                 .dtype = type,
                 .output_dtype = type == DType::kE4m3 ? DType::kBf16 : type,
                 .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size.dim))),
                 .seed = seed,
                 .query_size = query_size(design)});
  Designer(head, seed).apply(design);
  return head;
}

}  // namespace kv::reference
