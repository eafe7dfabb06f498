#include "harness/judge/value_failure.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

DType type_of(const ValueQuestion& q) {
  return q.column < 0 ? DType::kF32 : q.view.c.shape.output_dtype;
}

Divergence divergence(const ValueQuestion& q, const reference::Answer& a) {
  const DType type = type_of(q);
  Divergence d = divergence_at(q.view, *q.at.place.row, q.at.layer);
  d.head = q.at.head;
  d.query_slot = q.at.place.slot();
  d.dimension = q.column;
  d.tensor = q.column < 0 ? "lse" : "output";
  d.want = decode(type, encode(type, a.want));
  d.got = q.got;
  d.want_bits = hex_bits(type, encode(type, a.want));
  d.got_bits = hex_bits(type, q.got_bits);
  d.admissible_low = a.low;
  d.admissible_high = a.high;
  d.bound = a.bound;
  d.profile = q.profile;
  for (const reference::BudgetLine& line : a.budget) {
    d.budget.push_back({line.name, line.value, a.bound > 0 ? line.value / a.bound : 0});
  }
  return d;
}

std::string where_text(const ValueQuestion& q) {
  std::string text = fmt::format("{} of request {} at query slot {} (layer {}, head {}",
                                 q.column < 0 ? "LSE" : "output", q.at.place.row->request.value,
                                 q.at.place.slot(), q.at.layer, q.at.head);
  if (q.column >= 0) text += fmt::format(", dimension {}", q.column);
  return text + ")";
}

// The largest part of the budget, in words.
std::string budget_text(const Divergence& d) {
  const BudgetLine* largest = nullptr;
  for (const BudgetLine& line : d.budget) {
    if (largest == nullptr || line.value > largest->value) largest = &line;
  }
  if (largest == nullptr || !(d.bound > 0)) return "";
  return fmt::format(", {:.0f} % of it for {}", 100 * largest->share, largest->name);
}

std::string message(const ValueQuestion& q, const Divergence& d, std::string_view note) {
  return fmt::format(
      "The {} is {} ({}), want {} ({}): outside the admissible interval [{}, {}]. The bound is "
      "{:.3g}{}, for: {}.{} Certified with MPFR.",
      where_text(q), d.got, d.got_bits, d.want, d.want_bits, d.admissible_low, d.admissible_high,
      d.bound, budget_text(d), q.profile, note);
}

}  // namespace

Failure value_failure(const ValueQuestion& q, const reference::Answer& a) {
  Divergence d = divergence(q, a);
  if (std::isinf(q.got)) {
    return {Stage::kContract, "output-inf", message(q, d, " The reference is finite."), d};
  }
  if (a.basis != reference::Basis::kBlackBox) {
    const std::string note = fmt::format(
        " It lies inside the interval for any order of keys, but not for the declared {}: the "
        "result is wrong, or the declaration is.",
        a.basis == reference::Basis::kOrder ? "order of tiles"
                                            : "order of tiles and rounding of P");
    return {Stage::kInterval, "profile-value", message(q, d, note), d};
  }
  const Stage stage = a.exact ? Stage::kExact : Stage::kInterval;
  const std::string_view note =
      a.exact ? " Every weight of this row is exactly 1, so only the division may round." : "";
  return {stage, "output-value", message(q, d, note), d};
}

Failure lse_failure(const ValueQuestion& q, const reference::Answer& a, bool swapped) {
  Divergence d = divergence(q, a);
  if (std::isinf(q.got)) {
    return {Stage::kContract, "lse-inf", message(q, d, " The row sees keys."), d};
  }
  const Stage stage = a.exact ? Stage::kExact : Stage::kInterval;
  if (!swapped) return {stage, "lse-value", message(q, d, ""), d};
  const bool natural = q.view.facts.lse_base == KV_LSE_NATURAL;
  const std::string note = fmt::format(" It is right in base {}, but base {} is declared.",
                                       natural ? "2" : "e", natural ? "e" : "2");
  return {stage, "lse-base", message(q, d, note), d};
}

Failure nan_failure(const ValueQuestion& q) {
  Divergence d = divergence(q, {});
  d.want_bits.clear();
  return {Stage::kContract, q.column < 0 ? "lse-nan" : "output-nan",
          fmt::format("The {} is NaN ({}) though the row sees finite inputs only.", where_text(q),
                      d.got_bits),
          d};
}

std::optional<DType> dtype_of_dlpack(uint32_t code, uint32_t bits) {
  if (code == kDLFloat && bits == 32) return DType::kF32;
  if (code == kDLFloat && bits == 16) return DType::kF16;
  if (code == kDLBfloat && bits == 16) return DType::kBf16;
  if (code == kDLFloat8_e4m3fn && bits == 8) return DType::kE4m3;
  if (code == kDLFloat8_e5m2 && bits == 8) return DType::kE5m2;
  return std::nullopt;
}

}  // namespace kv
