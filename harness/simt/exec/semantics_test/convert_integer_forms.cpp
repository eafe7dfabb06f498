// cvt between integers, and between integers and floats. PTX ISA 9.0 section 9.7.9.22.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

constexpr const char* kIntegers[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
constexpr const char* kFloats[] = {"f16", "f32", "f64"};
constexpr std::string_view kSection = "9.7.9.22";

/// Bits of the register that an operand of this type lives in: 8-bit values use 16-bit ones.
int register_bits(std::string_view type) { return std::max(Integer(type).bits, 16); }

/// A narrow destination fills its register by its own sign.
uint64_t extend(std::string_view type, uint64_t value) {
  const Wide number = Integer(type).value(value);
  const int bits = register_bits(type);
  return bits == 64 ? uint64_t(number) : uint64_t(number) & ((uint64_t{1} << bits) - 1);
}

std::string text_of(const std::string& modifiers, std::string_view to, std::string_view from) {
  return "cvt" + modifiers + "." + std::string(to) + "." + std::string(from);
}

void between_integers(Forms& forms) {
  for (const char* to : kIntegers) {
    for (const char* from : kIntegers) {
      for (const bool sat : {false, true}) {
        const Integer source(from), target(to);
        // .sat is an error where nothing can be out of range.
        if (sat && source.least() >= target.least() && source.most() <= target.most()) continue;
        forms.push_back({.text = text_of(sat ? ".sat" : "", to, from),
                         .to = {to},
                         .from = {from},
                         .define =
                             [=](const uint64_t* s, Outcome* d) {
                               const Wide value = source.value(s[0]);
                               d->want = extend(to, sat ? target.clamp(value) : target.wrap(value));
                             },
                         .section = kSection});
      }
    }
  }
}

void to_floats(Forms& forms) {
  for (const char* to : kFloats) {
    for (const char* from : kIntegers) {
      for (const char* mode : {"rn", "rz", "rm", "rp"}) {
        const Format& format = format_of(to);
        const Integer source(from);
        forms.push_back({.text = text_of(std::string(".") + mode, to, from),
                         .to = {to},
                         .from = {from},
                         .define =
                             [=, &format](const uint64_t* s, Outcome* d) {
                               d->want =
                                   round(format, from_integer(source.value(s[0])), round_of(mode));
                             },
                         .section = kSection});
      }
    }
  }
}

/// Rounded to an integer, then clamped. NaN gives 0, or for f64 sources and 64-bit destinations the
/// most negative number (for u64, 2^63).
uint64_t to_integer(const Format& format, const Integer& target, Round direction, uint64_t bits) {
  const Real value = read(format, bits);
  if (value.is_nan()) {
    const bool zero = format.fraction_bits != 52 && target.bits != 64;
    return zero ? 0 : uint64_t{1} << (target.bits - 1);
  }
  const Real whole = integral(value, direction);
  if (mpfr_cmp(whole.get(), from_integer(target.least()).get()) <= 0)
    return target.wrap(target.least());
  if (mpfr_cmp(whole.get(), from_integer(target.most()).get()) >= 0)
    return target.wrap(target.most());
  return target.is_signed ? target.wrap(mpfr_get_si(whole.get(), MPFR_RNDZ))
                          : mpfr_get_ui(whole.get(), MPFR_RNDZ);
}

void from_floats(Forms& forms) {
  for (const char* to : kIntegers) {
    for (const char* from : kFloats) {
      for (const char* mode : {"rni", "rzi", "rmi", "rpi"}) {
        for (const bool ftz : {false, true}) {
          const Format& format = format_of(from);
          if (ftz && std::string_view(from) != "f32") continue;
          const Integer target(to);
          forms.push_back({.text = text_of("." + std::string(mode) + (ftz ? ".ftz" : ""), to, from),
                           .to = {to},
                           .from = {from},
                           .define =
                               [=, &format](const uint64_t* s, Outcome* d) {
                                 const uint64_t a = ftz ? flush(format, s[0]) : s[0];
                                 d->want =
                                     extend(to, to_integer(format, target, round_of(mode), a));
                                 // The rule for NaN names 8- and 16-bit results of f64 only as a
                                 // width.
                                 d->unspecified = is_nan(format, a) && target.bits < 32;
                               },
                           .section = kSection});
        }
      }
    }
  }
}

/// cvt.pack: two saturated values, above two bytes or nothing. Section 9.7.9.23.
void packed(Forms& forms) {
  for (const char* to : {"u16", "s16"}) {
    for (const char* from : {"s32"}) {
      const Integer source(from), target(to);
      forms.push_back({.text = std::string("cvt.pack.sat.") + to + "." + from,
                       .to = {"b32"},
                       .from = {from, from},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             d->want = target.clamp(source.value(s[0])) << 16 |
                                       target.clamp(source.value(s[1]));
                           },
                       .section = "9.7.9.23"});
    }
  }
  for (const char* to : {"u8", "s8"}) {
    const Integer source("s32"), target(to);
    forms.push_back({.text = std::string("cvt.pack.sat.") + to + ".s32.b32",
                     .to = {"b32"},
                     .from = {"s32", "s32", "b32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d->want = (s[2] & 0xffff) << 16 | target.clamp(source.value(s[0])) << 8 |
                                     target.clamp(source.value(s[1]));
                         },
                     .section = "9.7.9.23"});
  }
}

/// The wider registers that nvcc uses: a byte in a 32-bit register, a half widened.
void across_registers(Forms& forms) {
  struct Row {
    const char *text, *to, *from, *value;
  };
  constexpr Row kRows[] = {
      {"cvt.s32.s8", "s32", "b32", "s8"},   {"cvt.u32.u8", "u32", "b32", "u8"},
      {"cvt.s32.s16", "s32", "b32", "s16"}, {"cvt.u32.u16", "u32", "b32", "u16"},
      {"cvt.s64.s32", "s64", "b64", "s32"}, {"cvt.u64.u8", "u64", "b64", "u8"}};
  for (const Row& row : kRows) {
    const Integer value(row.value), target(row.to);
    forms.push_back(
        {.text = row.text,
         .to = {row.to},
         .from = {row.from},
         .define = [=](const uint64_t* s, Outcome* d) { d->want = target.wrap(value.value(s[0])); },
         .section = "9.4.1"});
  }
}

}  // namespace

std::vector<Form> convert_integer_forms() {
  Forms forms;
  between_integers(forms);
  to_floats(forms);
  from_floats(forms);
  packed(forms);
  across_registers(forms);
  return forms;
}

}  // namespace kv::simt::semantics
