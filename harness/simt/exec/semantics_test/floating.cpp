#include "harness/simt/exec/semantics_test/floating.h"

#include "harness/core/check.h"

namespace kv::simt::semantics {

const Format& format_of(std::string_view type) {
  if (type == "f16" || type == "f16x2") return kF16;
  if (type == "bf16" || type == "bf16x2") return kBf16;
  if (type == "f32") return kF32;
  KV_CHECK(type == "f64", "a floating-point type");
  return kF64;
}

Round round_of(std::string_view modifier) {
  if (modifier.starts_with("rz")) return Round::kZero;
  if (modifier.starts_with("rm")) return Round::kDown;
  if (modifier.starts_with("rp")) return Round::kUp;
  return modifier == "rna" ? Round::kNearestAway : Round::kNearest;
}

Outcome any_nan(const Format& format) {
  const Format* f = &format;
  return {.want = format.canonical_nan, .accept = [f](uint64_t got) { return is_nan(*f, got); }};
}

Outcome exactly(const Format& format, uint64_t bits) {
  if (!is_nan(format, bits)) return {.want = bits};
  Outcome outcome = any_nan(format);
  outcome.want = bits;
  return outcome;
}

Outcome finish(const Format& format, const Real& exact, Finish how) {
  if (exact.is_nan()) {
    if (how.sat) return {.want = 0};
    return format.fraction_bits == 52 ? any_nan(format) : Outcome{.want = format.canonical_nan};
  }
  Outcome outcome{.want = round(format, exact, how.direction)};
  const uint64_t sign = outcome.want & format.sign_bit();
  if (how.ftz && is_subnormal(format, outcome.want)) outcome.want = sign;
  if (how.ftz && (outcome.want ^ sign) == format.least_normal()) {
    const Real least = read(format, format.least_normal());
    if (mpfr_cmpabs(exact.get(), least.get()) < 0) outcome.also = sign;
  }
  if (!how.sat && !how.relu) return outcome;
  if (sign) {
    if (outcome.want == sign) outcome.also = sign;
    outcome.want = 0;
  } else if (how.sat) {
    const Real one = from_integer(1);
    const uint64_t one_bits = round(format, one, Round::kNearest);
    if (outcome.want > one_bits) outcome.want = one_bits;
  }
  return outcome;
}

Outcome pack(const Outcome& low, const Outcome& high) {
  Outcome packed{.want = low.want | high.want << 16};
  packed.accept = [low, high](uint64_t got) {
    const auto fits = [](const Outcome& half, uint64_t value) {
      return half.unspecified || value == half.want || (half.also && value == *half.also) ||
             (half.accept && half.accept(value));
    };
    return fits(low, got & 0xffff) && fits(high, got >> 16);
  };
  return packed;
}

int compare(const Format& format, uint64_t a, uint64_t b) {
  if (is_nan(format, a) || is_nan(format, b)) return 2;
  const int order = mpfr_cmp(read(format, a).get(), read(format, b).get());
  return (order > 0) - (order < 0);
}

}  // namespace kv::simt::semantics
