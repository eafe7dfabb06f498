#include "reference/soundness/faults.h"

#include <algorithm>

namespace kv::reference {
namespace {

struct Rows {
  std::vector<double>& elements;
  size_t dim;
  double* row(size_t i) { return &elements[i * dim]; }
  void erase(size_t i) {
    elements.erase(elements.begin() + static_cast<long>(i * dim),
                   elements.begin() + static_cast<long>((i + 1) * dim));
  }
  void append_copy(size_t i) {
    for (size_t c = 0; c < dim; ++c) elements.push_back(elements[i * dim + c]);
  }
  void swap(size_t i, size_t j) { std::swap_ranges(row(i), row(i) + dim, row(j)); }
};

Rows keys(RowInputs& in) { return {in.keys, in.shape.dim_k}; }
Rows values(RowInputs& in) { return {in.values, in.shape.dim_v}; }

void erase_key(RowInputs& in, size_t i) {
  keys(in).erase(i);
  values(in).erase(i);
  const auto at = [i](auto& v) { v.erase(v.begin() + static_cast<long>(i)); };
  at(in.key_scales);
  at(in.value_scales);
  at(in.bias);
  at(in.slots);
}

void append_key(RowInputs& in, size_t like) {
  keys(in).append_copy(like);
  values(in).append_copy(like);
  in.key_scales.push_back(in.key_scales[like]);
  in.value_scales.push_back(in.value_scales[like]);
  in.bias.push_back(in.bias[like]);
  in.slots.push_back(in.slots.back() + 1);
}

// A token that is none of the row's: each element from another key.
void append_stranger(RowInputs& in, Draw& draw) {
  const size_t n = in.count();
  append_key(in, 0);
  for (size_t c = 0; c < in.shape.dim_k; ++c) keys(in).row(n)[c] = keys(in).row(draw.below(n))[c];
  for (size_t c = 0; c < in.shape.dim_v; ++c) {
    values(in).row(n)[c] = values(in).row(draw.below(n))[c];
  }
}

}  // namespace

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kDropKey:
      return "drop one key";
    case Fault::kDuplicateKey:
      return "count one key twice";
    case Fault::kExtraKey:
      return "one key too many";
    case Fault::kDropLast:
      return "causal limit one early";
    case Fault::kDropFirst:
      return "window one short";
    case Fault::kSwapValues:
      return "swap two V rows";
    case Fault::kSwapKeysAndValues:
      return "swap K and V (no fault)";
    case Fault::kScale:
      return "scale off by 1e-3";
    case Fault::kStaleValue:
      return "one stale V element";
    case Fault::kStaleKey:
      return "one stale K element";
    case Fault::kStalePage:
      return "stale V page of 16";
  }
  return "?";
}

RowInputs plant(Fault fault, const RowInputs& inputs, Draw& draw) {
  RowInputs in = inputs;
  const size_t n = in.count(), i = draw.below(n), j = (i + 1 + draw.below(n - 1)) % n;
  const size_t dk = draw.below(in.shape.dim_k), dv = draw.below(in.shape.dim_v);
  switch (fault) {
    case Fault::kNone:
      break;
    case Fault::kDropKey:
      erase_key(in, i);
      break;
    case Fault::kDuplicateKey:
      append_key(in, i);
      break;
    case Fault::kExtraKey:
      append_stranger(in, draw);
      break;
    case Fault::kDropLast:
      erase_key(in, n - 1);
      break;
    case Fault::kDropFirst:
      erase_key(in, 0);
      break;
    case Fault::kSwapValues:
      values(in).swap(i, j);
      break;
    case Fault::kSwapKeysAndValues:
      keys(in).swap(i, j);
      values(in).swap(i, j);
      break;
    case Fault::kScale:
      in.shape.scale *= 1.001f;
      break;
    case Fault::kStaleValue:
      values(in).row(i)[dv] = values(in).row(j)[dv];
      break;
    case Fault::kStaleKey:
      keys(in).row(i)[dk] = keys(in).row(j)[dk];
      break;
    case Fault::kStalePage:
      for (size_t k = 0; k < std::min<size_t>(16, n / 2); ++k) {
        const size_t to = (i + k) % n, from = (i + n / 2 + k) % n;
        std::copy_n(values(in).row(from), in.shape.dim_v, values(in).row(to));
      }
      break;
  }
  in.span = in.slots.back() - in.slots.front() + 1;
  return in;
}

}  // namespace kv::reference
