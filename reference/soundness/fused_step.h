// Purpose: sums of products as hardware does them, bit by bit.
// Contract: `sum` continues an fp32 accumulator over `count` products in the order given, in steps
// of the model's width aligned to the first product. Source: docs/numerics.md §1.2 (Fasi et al.
// 2021, Xie et al. 2025): c' = RZ_t(sum of T_F(a_i b_i) + T_F(c)), T_F truncating at
// 2^(largest exponent - F).
#pragma once

#include <cstddef>

#include "reference/profile.h"

namespace kv::reference {

/// Two vectors of exact operands, or one and a number (stride 0). A product with a zero factor adds
/// nothing. A factor below its `normal` is aligned as if it were that.
struct Products {
  const double* a = nullptr;
  const double* b = nullptr;
  size_t b_stride = 1;
  size_t count = 0;
  double a_normal = 0, b_normal = 0;
};

float sum_of_products(const Accumulation& model, float start, const Products& products);

}  // namespace kv::reference
