#include "reference/precise/enclosure.h"

#include <boost/multiprecision/mpfi.hpp>

#include "harness/core/check.h"

namespace kv::reference {
namespace {

namespace mp = boost::multiprecision;
using Interval = mp::number<mp::mpfi_float_backend<77>, mp::et_off>;

Interval score(const RowInputs& in, size_t i) {
  const size_t d = in.shape.dim_k;
  Interval dot(0);
  for (size_t c = 0; c < d; ++c) dot += Interval(in.query[c]) * Interval(in.keys[i * d + c]);
  Interval x = dot * Interval(in.key_scales[i]) * Interval(double{in.shape.scale});
  if (in.shape.softcap > 0) {
    const Interval cap(double{in.shape.softcap});
    x = cap * tanh(Interval(x / cap));
  }
  return x + Interval(in.bias[i]);
}

}  // namespace

Enclosure enclose(const RowInputs& in, int64_t column) {
  KV_CHECK(in.count() > 0, "an empty row has no formula");
  std::vector<Interval> scores;
  for (size_t i = 0; i < in.count(); ++i) scores.push_back(score(in, i));
  // Any shift will do: the largest midpoint keeps the exponentials near 1.
  double shift = median(scores[0]).convert_to<double>();
  for (const Interval& x : scores) shift = std::max(shift, median(x).convert_to<double>());
  Interval sum(0), numerator(0);
  for (size_t i = 0; i < in.count(); ++i) {
    const Interval weight = exp(Interval(scores[i] - Interval(shift)));
    sum += weight;
    if (column < 0) continue;
    const size_t at = i * in.shape.dim_v + static_cast<size_t>(column);
    numerator += weight * Interval(in.value_scales[i]) * Interval(in.values[at]);
  }
  if (in.sink) sum += exp(Interval(Interval(*in.sink) - Interval(shift)));
  const Interval result =
      column < 0 ? Interval(log(sum) + Interval(shift)) : Interval(numerator / sum);
  return {mpfr_get_d(&result.backend().data()->left, MPFR_RNDD),
          mpfr_get_d(&result.backend().data()->right, MPFR_RNDU)};
}

}  // namespace kv::reference
