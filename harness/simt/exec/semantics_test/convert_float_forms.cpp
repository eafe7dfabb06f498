// cvt between floating-point types. PTX ISA 9.0 section 9.7.9.22.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;
constexpr std::string_view kSection = "9.7.9.22";

std::string text_of(const std::string& modifiers, std::string_view to, std::string_view from) {
  return "cvt" + modifiers + "." + std::string(to) + "." + std::string(from);
}

/// One conversion; .ftz flushes f32 subnormals on either side.
Form convert(const std::string& modifiers, Operand to, Operand from, Finish how, uint32_t sm = 80) {
  const Format &source = format_of(from), &target = format_of(to);
  return {.text = text_of(modifiers, to, from),
          .to = {to},
          .from = {from},
          .define =
              [=, &source, &target](const uint64_t* s, Outcome* d) {
                const uint64_t a = how.ftz && &source == &kF32 ? flush(source, s[0]) : s[0];
                Finish rest = how;
                rest.ftz = how.ftz && &target == &kF32;
                *d = finish(target, read(source, a), rest);
                // Whether widening keeps a NaN's payload is not specified.
                const bool widens = target.bits() > source.bits() || &target == &kF32;
                if (widens && !how.sat && is_nan(source, a)) *d = any_nan(target);
              },
          .section = kSection,
          .sm = sm};
}

void between_floats(Forms& forms) {
  constexpr std::pair<const char*, const char*> kNarrowing[] = {
      {"f16", "f32"}, {"f16", "f64"}, {"f32", "f64"}};
  constexpr std::pair<const char*, const char*> kWidening[] = {
      {"f32", "f16"}, {"f64", "f16"}, {"f64", "f32"}};
  for (const auto& [to, from] : kNarrowing) {
    for (const char* mode : {"rn", "rz", "rm", "rp"}) {
      const bool single = std::string_view(to) == "f32" || std::string_view(from) == "f32";
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if (ftz && !single) continue;
          forms.push_back(
              convert(std::string(".") + mode + (ftz ? ".ftz" : "") + (sat ? ".sat" : ""), to, from,
                      {.direction = round_of(mode), .ftz = ftz, .sat = sat}));
        }
      }
    }
  }
  for (const auto& [to, from] : kWidening) {
    forms.push_back(convert("", to, from, {}));
    forms.push_back(convert(".sat", to, from, {.sat = true}));
    const bool single = std::string_view(to) == "f32" || std::string_view(from) == "f32";
    if (single) forms.push_back(convert(".ftz", to, from, {.ftz = true}));
  }
}

/// To an integer of the same type: the sign of a zero result is the operand's.
void to_integral(Forms& forms) {
  for (const char* type : {"f16", "f32", "f64"}) {
    const Format& format = format_of(type);
    for (const char* mode : {"rni", "rzi", "rmi", "rpi"}) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if (ftz && &format != &kF32) continue;
          const std::string text = text_of(
              "." + std::string(mode) + (ftz ? ".ftz" : "") + (sat ? ".sat" : ""), type, type);
          forms.push_back({.text = text,
                           .to = {type},
                           .from = {type},
                           .define =
                               [=, &format](const uint64_t* s, Outcome* d) {
                                 const Real a = read(format, ftz ? flush(format, s[0]) : s[0]);
                                 *d = finish(format, integral(a, round_of(mode)),
                                             {.ftz = ftz, .sat = sat});
                                 if (a.is_nan() && !sat) *d = any_nan(format);
                               },
                           .section = kSection});
        }
      }
    }
  }
  for (const bool ftz : {false, true}) {
    Form form = convert(ftz ? ".ftz.sat" : ".sat", "f32", "f32", {.ftz = ftz, .sat = true});
    forms.push_back(form);
  }
}

/// .relu and .satfinite to bf16 and f16, one value or two packed (the first in the upper half).
void to_halves(Forms& forms) {
  for (const char* type : {"f16", "bf16"}) {
    const Format& format = format_of(type);
    for (const char* mode : {"rn", "rz"}) {
      for (const bool relu : {false, true}) {
        for (const bool saturate : {false, true}) {
          const auto one = [=, &format](uint64_t bits) {
            const Real value = read(kF32, bits);
            Outcome outcome = finish(format, value, {.direction = round_of(mode), .relu = relu});
            if (saturate && !value.is_nan() && !(relu && value.is_negative())) {
              outcome.want = round(format, value, round_of(mode), true);
            }
            return outcome;
          };
          const std::string modifiers =
              std::string(".") + mode + (relu ? ".relu" : "") + (saturate ? ".satfinite" : "");
          const uint32_t sm = saturate ? 90 : 80;
          const Operand packed = type[0] == 'b' ? "bf16x2" : "f16x2";
          // cvt.rn.f16.f32 is in between_floats.
          if (type[0] == 'b' || relu || saturate) {
            forms.push_back({.text = text_of(modifiers, type, "f32"),
                             .to = {type},
                             .from = {"f32"},
                             .define = [=](const uint64_t* s, Outcome* d) { *d = one(s[0]); },
                             .section = kSection,
                             .sm = sm});
          }
          forms.push_back(
              {.text = text_of(modifiers, packed, "f32"),
               .to = {packed},
               .from = {"f32", "f32"},
               .define = [=](const uint64_t* s, Outcome* d) { *d = pack(one(s[1]), one(s[0])); },
               .section = kSection,
               .sm = sm,
               .pairs_max = 6000});
        }
      }
    }
  }
  Form widen = convert("", "f32", "bf16", {}, 90);
  forms.push_back(widen);
}

/// tf32: 19 significant bits in a 32-bit register; the low 13 bits are zero here.
void to_tf32(Forms& forms) {
  for (const char* mode : {"rna", "rn", "rz"}) {
    for (const bool relu : {false, true}) {
      const bool nearest_away = std::string_view(mode) == "rna";
      if (relu && nearest_away) continue;
      forms.push_back(
          {.text = text_of("." + std::string(mode) + (relu ? ".relu" : ""), "tf32", "f32"),
           .to = {"b32"},
           .from = {"f32"},
           .define =
               [=](const uint64_t* s, Outcome* d) {
                 const Real value = read(kF32, s[0]);
                 if (value.is_nan()) {
                   *d = any_nan(kF32);
                   return;
                 }
                 const Outcome short_form =
                     finish(kTf32, value, {.direction = round_of(mode), .relu = relu});
                 d->want = short_form.want << 13;
                 if (short_form.also) d->also = *short_form.also << 13;
               },
           .section = kSection,
           .sm = nearest_away ? 80u : 90u});
    }
  }
}

/// Pairs of 8-bit floats; the first operand in the upper byte. NaN is 0x7f; out of range saturates.
void eight_bits(Forms& forms) {
  struct Type {
    const char* name;
    const Format& format;
  };
  for (const Type& type : {Type{"e4m3x2", kE4m3}, Type{"e5m2x2", kE5m2}}) {
    const Format& format = type.format;
    for (const bool relu : {false, true}) {
      const auto narrow = [=, &format](const Format& source, uint64_t bits) -> uint64_t {
        const Real value = read(source, bits);
        if (relu && !value.is_nan() && value.is_negative()) return 0;
        return round(format, value, Round::kNearest, true);
      };
      const std::string tail = std::string(relu ? ".relu." : ".");
      forms.push_back(
          {.text = "cvt.rn.satfinite" + tail + type.name + ".f32",
           .to = {"b16"},
           .from = {"f32", "f32"},
           .define = [=](const uint64_t* s,
                         Outcome* d) { d->want = narrow(kF32, s[0]) << 8 | narrow(kF32, s[1]); },
           .section = kSection,
           .sm = 89});
      forms.push_back({.text = "cvt.rn.satfinite" + tail + type.name + ".f16x2",
                       .to = {"b16"},
                       .from = {"f16x2"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             d->want = narrow(kF16, s[0] >> 16) << 8 | narrow(kF16, s[0] & 0xffff);
                           },
                       .section = kSection,
                       .sm = 89});
      forms.push_back({.text = "cvt.rn" + tail + "f16x2." + type.name,
                       .to = {"f16x2"},
                       .from = {"b16p"},
                       .define =
                           [=, &format](const uint64_t* s, Outcome* d) {
                             const Finish how{.relu = relu};
                             *d = pack(finish(kF16, read(format, s[0] & 0xff), how),
                                       finish(kF16, read(format, s[0] >> 8), how));
                           },
                       .section = kSection,
                       .sm = 89});
    }
  }
}

}  // namespace

std::vector<Form> convert_float_forms() {
  Forms forms;
  between_floats(forms);
  to_integral(forms);
  to_halves(forms);
  to_tf32(forms);
  eight_bits(forms);
  return forms;
}

}  // namespace kv::simt::semantics
