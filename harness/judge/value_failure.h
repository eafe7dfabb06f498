// Purpose: words and figures for a value outside its admissible interval.
// Contract: pure functions of the question and its answer; messages name what, where, want and got
// with their bits, the interval, the bound and the assumptions that it rests on.
#pragma once

#include <optional>

#include "harness/core/formats.h"
#include "harness/judge/failure.h"
#include "reference/decide.h"

namespace kv {

/// One (query row, layer, query head).
struct ElementPlace {
  RowPlace place;
  uint32_t layer = 0, head = 0;
};

struct ValueQuestion {
  const StepView& view;
  const ElementPlace& at;
  const std::string& profile;
  int64_t column = -1;  // -1: the LSE
  double got = 0;
  uint32_t got_bits = 0;
};

Failure value_failure(const ValueQuestion& q, const reference::Answer& answer);
/// `swapped`: the observed value conforms in the other base.
Failure lse_failure(const ValueQuestion& q, const reference::Answer& answer, bool swapped);
Failure nan_failure(const ValueQuestion& q);

/// DLPack's type code and bits; nothing for a type that kverify does not know.
std::optional<DType> dtype_of_dlpack(uint32_t code, uint32_t bits);

}  // namespace kv
