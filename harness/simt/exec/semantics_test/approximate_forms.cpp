// Approximate functions under the profile "nearest": the mathematical result, correctly rounded.
// PTX ISA 9.0 sections 9.7.3.8 to 9.7.3.22 and 9.7.4.8 to 9.7.4.10.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;
using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

constexpr int kPrecision = 400;  // bits of a function's value, before it is rounded

/// The function at a short precision, which is all that rounding its value once more needs.
Real evaluate(Function function, const Real& at) {
  Real result(kPrecision);
  function(result.get(), at.get(), MPFR_RNDN);
  return result;
}

int reciprocal(mpfr_ptr to, mpfr_srcptr from, mpfr_rnd_t mode) {
  return mpfr_ui_div(to, 1, from, mode);
}

int reciprocal_root(mpfr_ptr to, mpfr_srcptr from, mpfr_rnd_t mode) {
  if (mpfr_zero_p(from)) {  // keeps the sign: rsqrt(-0) = -inf
    mpfr_set_inf(to, mpfr_signbit(from) ? -1 : 1);
    return 0;
  }
  return mpfr_rec_sqrt(to, from, mode);
}

struct Unary {
  const char* name;
  Function function;
  std::string_view section;
};

constexpr Unary kSingle[] = {
    {"rcp", reciprocal, "9.7.3.13"},        {"sqrt", mpfr_sqrt, "9.7.3.15"},
    {"rsqrt", reciprocal_root, "9.7.3.16"}, {"sin", mpfr_sin, "9.7.3.18"},
    {"cos", mpfr_cos, "9.7.3.19"},          {"lg2", mpfr_log2, "9.7.3.20"},
    {"ex2", mpfr_exp2, "9.7.3.21"},         {"tanh", mpfr_tanh, "9.7.3.22"},
};

Outcome apply(const Format& format, Function function, bool ftz, uint64_t bits) {
  const uint64_t a = ftz ? flush(format, bits) : bits;
  return finish(format, evaluate(function, read(format, a)), {.ftz = ftz});
}

void single(Forms& forms) {
  for (const Unary& unary : kSingle) {
    for (const bool ftz : {false, true}) {
      const bool is_tanh = unary.function == mpfr_tanh;
      if (is_tanh && ftz) continue;
      const bool periodic = unary.function == mpfr_sin || unary.function == mpfr_cos;
      forms.push_back({.text = std::string(unary.name) + ".approx" + (ftz ? ".ftz.f32" : ".f32"),
                       .to = {"f32"},
                       .from = {"f32"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             *d = apply(kF32, unary.function, ftz, s[0]);
                             // Beyond the reduced range the error is unbounded.
                             d->unspecified = periodic && (s[0] & 0x7fffffff) > 0x43000000 &&
                                              !is_nan(kF32, s[0]);
                           },
                       .section = unary.section});
    }
  }
}

void half(Forms& forms, const char* opcode, Operand type, Function function, bool ftz) {
  const Format& format = format_of(type);
  const bool packed = type.ends_with("x2");
  forms.push_back({.text = std::string(opcode) + "." + std::string(type),
                   .to = {type},
                   .from = {type},
                   .define =
                       [=, &format](const uint64_t* s, Outcome* d) {
                         *d = apply(format, function, ftz, s[0] & 0xffff);
                         if (packed) *d = pack(*d, apply(format, function, ftz, s[0] >> 16));
                       },
                   .section = "9.7.4",
                   .sm = type[0] == 'b' ? 90u : 80u});
}

/// Section 9.7.3.8. For 2^126 < |b| < 2^128 div.approx gives 0, or NaN for an infinite dividend.
void quotients(Forms& forms) {
  for (const char* kind : {"approx", "full"}) {
    for (const bool ftz : {false, true}) {
      const bool is_approx = kind[0] == 'a';
      forms.push_back({.text = std::string("div.") + kind + (ftz ? ".ftz.f32" : ".f32"),
                       .to = {"f32"},
                       .from = {"f32", "f32"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             const uint64_t a = ftz ? flush(kF32, s[0]) : s[0];
                             const uint64_t b = ftz ? flush(kF32, s[1]) : s[1];
                             *d = finish(kF32, divide(read(kF32, a), read(kF32, b)), {.ftz = ftz});
                             const uint64_t magnitude = b & 0x7fffffff;
                             const bool huge = magnitude > 0x7e800000 && magnitude < 0x7f800000;
                             if (is_approx && huge && !is_nan(kF32, a)) {
                               const bool infinite = (a & 0x7fffffff) == 0x7f800000;
                               d->also = infinite ? 0x7fffffff : (a ^ b) & 0x80000000;
                             }
                             // Below 2^-126 the approximate reciprocal overflows: not described.
                             d->unspecified = is_approx && magnitude != 0 && magnitude < 0x00800000;
                           },
                       .section = "9.7.3.8"});
    }
  }
}

/// Section 9.7.3.14: the low word of the result is zero, the relative error below 2^-20.
void gross_double(Forms& forms) {
  struct Row {
    const char* text;
    Function function;
  };
  for (const Row& row :
       {Row{"rcp.approx.ftz.f64", reciprocal}, Row{"rsqrt.approx.ftz.f64", reciprocal_root},
        Row{"rsqrt.approx.f64", reciprocal_root}}) {
    const bool ftz = std::string_view(row.text).find("ftz") != std::string_view::npos;
    forms.push_back(
        {.text = row.text,
         .to = {"f64"},
         .from = {"f64"},
         .define =
             [=](const uint64_t* s, Outcome* d) {
               const uint64_t a = ftz ? flush(kF64, s[0]) : s[0];
               const Real exact = evaluate(row.function, read(kF64, a));
               *d = finish(kF64, exact, {.ftz = ftz});
               if (exact.is_nan() || exact.is_infinite() || exact.is_zero()) return;
               d->accept = [=](uint64_t got) {
                 if (ftz && uint32_t(got) != 0) return false;
                 const Real value = read(kF64, got);
                 if (value.is_nan() || value.is_infinite()) return false;
                 const Real ratio = divide(value, exact);
                 const double error = ratio.approximately() - 1;
                 const bool tiny =
                     mpfr_cmpabs(exact.get(), read(kF64, kF64.least_normal()).get()) < 0;
                 return (ftz && tiny && value.is_zero()) || (error < 0x1p-20 && error > -0x1p-20);
               };
             },
         .section = "9.7.3.14"});
  }
}

}  // namespace

std::vector<Form> approximate_forms() {
  Forms forms;
  single(forms);
  quotients(forms);
  gross_double(forms);
  for (const char* type : {"f16", "f16x2"}) {
    half(forms, "ex2.approx", type, mpfr_exp2, false);
    half(forms, "tanh.approx", type, mpfr_tanh, false);
  }
  for (const char* type : {"bf16", "bf16x2"}) {
    half(forms, "ex2.approx.ftz", type, mpfr_exp2, true);
    half(forms, "tanh.approx", type, mpfr_tanh, false);
  }
  return forms;
}

}  // namespace kv::simt::semantics
