// Single and double precision with IEEE rounding, PTX ISA 9.0 section 9.7.3.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;
using Exact = std::function<Real(const Real*, Round)>;

constexpr uint64_t kDoublePairs = 3000;  // MPFR at 6,500 bits is slow

/// One arithmetic form; `exact` sees flushed operands.
Form arithmetic(const std::string& opcode, Operand type, size_t sources, Finish how,
                std::string_view section, Exact exact) {
  const Format& format = format_of(type);
  return {.text = opcode + "." + std::string(type),
          .to = {type},
          .from = std::vector<Operand>(sources, type),
          .define =
              [=, &format](const uint64_t* s, Outcome* d) {
                std::vector<Real> values;
                for (size_t i = 0; i < sources; ++i) {
                  values.push_back(read(format, how.ftz ? flush(format, s[i]) : s[i]));
                }
                *d = finish(format, exact(values.data(), how.direction), how);
              },
          .section = section,
          .pairs_max = type == "f64" ? kDoublePairs : 12000};
}

/// All roundings of an operation, and .ftz and .sat where f32 has them. `plain`: also without a
/// rounding modifier.
void rounded(Forms& forms, const std::string& opcode, size_t sources, bool plain, bool sat,
             std::string_view section, const Exact& exact) {
  std::vector<std::string> modes = {".rn", ".rz", ".rm", ".rp"};
  if (plain) modes.push_back("");
  for (const std::string& mode : modes) {
    const Round direction = mode.empty() ? Round::kNearest : round_of(mode.substr(1));
    forms.push_back(
        arithmetic(opcode + mode, "f64", sources, {.direction = direction}, section, exact));
    for (const bool ftz : {false, true}) {
      for (const bool saturate : {false, true}) {
        if (saturate && !sat) continue;
        const std::string text = opcode + mode + (ftz ? ".ftz" : "") + (saturate ? ".sat" : "");
        forms.push_back(arithmetic(text, "f32", sources,
                                   {.direction = direction, .ftz = ftz, .sat = saturate}, section,
                                   exact));
      }
    }
  }
}

void arithmetic_forms(Forms& forms) {
  rounded(forms, "add", 2, true, true, "9.7.3.3",
          [](const Real* s, Round r) { return add(s[0], s[1], r); });
  rounded(forms, "sub", 2, true, true, "9.7.3.4",
          [](const Real* s, Round r) { return add(s[0], negate(s[1]), r); });
  rounded(forms, "mul", 2, true, true, "9.7.3.5",
          [](const Real* s, Round) { return multiply(s[0], s[1]); });
  rounded(forms, "fma", 3, false, true, "9.7.3.6",
          [](const Real* s, Round r) { return fma(s[0], s[1], s[2], r); });
  rounded(forms, "mad", 3, false, true, "9.7.3.7",
          [](const Real* s, Round r) { return fma(s[0], s[1], s[2], r); });
  rounded(forms, "div", 2, false, false, "9.7.3.8",
          [](const Real* s, Round) { return divide(s[0], s[1]); });
  rounded(forms, "rcp", 1, false, false, "9.7.3.13",
          [](const Real* s, Round) { return divide(from_integer(1), s[0]); });
  rounded(forms, "sqrt", 1, false, false, "9.7.3.15", [](const Real* s, Round) {
    Real root(s[0]);
    mpfr_sqrt(root.get(), s[0].get(), MPFR_RNDN);
    return root;
  });
}

void signs(Forms& forms) {
  for (const char* type : {"f32", "f64"}) {
    const Format& f = format_of(type);
    for (const bool ftz : {false, true}) {
      if (ftz && type[1] == '6') continue;
      const std::string tail = std::string(ftz ? ".ftz." : ".") + type;
      forms.push_back({.text = "abs" + tail,
                       .to = {type},
                       .from = {type},
                       .define =
                           [=, &f](const uint64_t* s, Outcome* d) {
                             *d = exactly(f, (ftz ? flush(f, s[0]) : s[0]) & ~f.sign_bit());
                           },
                       .section = "9.7.3.9"});
      forms.push_back({.text = "neg" + tail,
                       .to = {type},
                       .from = {type},
                       .define =
                           [=, &f](const uint64_t* s, Outcome* d) {
                             *d = exactly(f, (ftz ? flush(f, s[0]) : s[0]) ^ f.sign_bit());
                           },
                       .section = "9.7.3.10"});
    }
  }
}

}  // namespace

/// Sections 9.7.3.11 and 9.7.3.12. A number beats a NaN unless .NaN; -0 is less than +0.
Outcome define_min_max(const Format& f, bool is_min, bool propagate, bool xorsign, uint64_t a,
                       uint64_t b) {
  const uint64_t sign = xorsign ? (a ^ b) & f.sign_bit() : 0;
  if (xorsign) {
    a &= ~f.sign_bit();
    b &= ~f.sign_bit();
  }
  const bool a_nan = is_nan(f, a), b_nan = is_nan(f, b);
  if ((a_nan && b_nan) || (propagate && (a_nan || b_nan))) {
    if (xorsign || f.fraction_bits == 52) return any_nan(f);
    return {.want = f.canonical_nan};
  }
  if (a_nan) return {.want = b | sign};
  if (b_nan) return {.want = a | sign};
  const int order = compare(f, a, b);
  const bool a_less = order < 0 || (order == 0 && (a & f.sign_bit()) != 0);
  return {.want = (a_less == is_min ? a : b) | sign};
}

namespace {

void extremes(Forms& forms) {
  for (const bool is_min : {true, false}) {
    const std::string opcode = is_min ? "min" : "max";
    forms.push_back(
        {.text = opcode + ".f64",
         .to = {"f64"},
         .from = {"f64", "f64"},
         .define = [=](const uint64_t* s,
                       Outcome* d) { *d = define_min_max(kF64, is_min, false, false, s[0], s[1]); },
         .section = "9.7.3.11"});
    for (int bits = 0; bits < 8; ++bits) {
      const bool ftz = bits & 1, propagate = bits & 2, xorsign = bits & 4;
      forms.push_back({.text = opcode + (ftz ? ".ftz" : "") + (propagate ? ".NaN" : "") +
                               (xorsign ? ".xorsign.abs" : "") + ".f32",
                       .to = {"f32"},
                       .from = {"f32", "f32"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             *d = define_min_max(kF32, is_min, propagate, xorsign,
                                                 ftz ? flush(kF32, s[0]) : s[0],
                                                 ftz ? flush(kF32, s[1]) : s[1]);
                           },
                       .section = "9.7.3.11",
                       .sm = xorsign ? 89u : 80u});
    }
  }
}

}  // namespace

std::vector<Form> float_forms() {
  Forms forms;
  arithmetic_forms(forms);
  signs(forms);
  extremes(forms);
  return forms;
}

}  // namespace kv::simt::semantics
