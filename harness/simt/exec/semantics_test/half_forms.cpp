// f16, f16x2, bf16 and bf16x2 arithmetic, PTX ISA 9.0 section 9.7.4.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {

Outcome define_min_max(const Format& f, bool is_min, bool propagate, bool xorsign, uint64_t a,
                       uint64_t b);  // float_forms.cpp

namespace {

using Forms = std::vector<Form>;
using Scalar = std::function<Outcome(const uint64_t*)>;  // on one 16-bit element of each source

/// The scalar form and its packed twin.
void both(Forms& forms, const std::string& opcode, bool is_bf16, size_t sources, uint32_t sm,
          std::string_view section, const Scalar& define) {
  const Operand type = is_bf16 ? "bf16" : "f16", packed = is_bf16 ? "bf16x2" : "f16x2";
  forms.push_back({.text = opcode + "." + std::string(type),
                   .to = {type},
                   .from = std::vector<Operand>(sources, type),
                   .define = [=](const uint64_t* s, Outcome* d) { *d = define(s); },
                   .section = section,
                   .sm = sm,
                   .pairs_max = 6000});
  forms.push_back({.text = opcode + "." + std::string(packed),
                   .to = {packed},
                   .from = std::vector<Operand>(sources, packed),
                   .define =
                       [=](const uint64_t* s, Outcome* d) {
                         uint64_t low[3], high[3];
                         for (size_t i = 0; i < sources; ++i) {
                           low[i] = s[i] & 0xffff;
                           high[i] = s[i] >> 16;
                         }
                         *d = pack(define(low), define(high));
                       },
                   .section = section,
                   .sm = sm,
                   .pairs_max = 3000});
}

using Exact = std::function<Real(const Real*)>;

void arithmetic(Forms& forms, const std::string& opcode, bool is_bf16, size_t sources, uint32_t sm,
                Finish how, const Exact& exact) {
  const Format& format = is_bf16 ? kBf16 : kF16;
  const std::string text =
      opcode + (how.ftz ? ".ftz" : "") + (how.sat ? ".sat" : "") + (how.relu ? ".relu" : "");
  both(forms, text, is_bf16, sources, sm, "9.7.4", [=, &format](const uint64_t* s) {
    std::vector<Real> values;
    for (size_t i = 0; i < sources; ++i) {
      values.push_back(read(format, how.ftz ? flush(format, s[i]) : s[i]));
    }
    return finish(format, exact(values.data()), how);
  });
}

void sums_and_products(Forms& forms) {
  struct Op {
    const char* name;
    size_t sources;
    Exact exact;
  };
  const Op ops[] = {
      {"add", 2, [](const Real* s) { return add(s[0], s[1], Round::kNearest); }},
      {"sub", 2, [](const Real* s) { return add(s[0], negate(s[1]), Round::kNearest); }},
      {"mul", 2, [](const Real* s) { return multiply(s[0], s[1]); }}};
  for (const Op& op : ops) {
    for (const char* mode : {"", ".rn"}) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          arithmetic(forms, op.name + std::string(mode), false, op.sources, 80,
                     {.ftz = ftz, .sat = sat}, op.exact);
        }
      }
      arithmetic(forms, op.name + std::string(mode), true, op.sources, 90, {}, op.exact);
    }
  }
  const Exact fused = [](const Real* s) { return fma(s[0], s[1], s[2], Round::kNearest); };
  for (const bool ftz : {false, true}) {
    arithmetic(forms, "fma.rn", false, 3, 80, {.ftz = ftz}, fused);
    arithmetic(forms, "fma.rn", false, 3, 80, {.ftz = ftz, .sat = true}, fused);
    arithmetic(forms, "fma.rn", false, 3, 80, {.ftz = ftz, .relu = true}, fused);
  }
  arithmetic(forms, "fma.rn", true, 3, 80, {}, fused);
  arithmetic(forms, "fma.rn", true, 3, 80, {.relu = true}, fused);
}

void signs(Forms& forms) {
  for (const bool is_bf16 : {false, true}) {
    const Format& f = is_bf16 ? kBf16 : kF16;
    for (const bool ftz : {false, true}) {
      if (ftz && is_bf16) continue;
      const std::string tail = ftz ? ".ftz" : "";
      both(forms, "abs" + tail, is_bf16, 1, 80, "9.7.4.6", [=, &f](const uint64_t* s) {
        return exactly(f, (ftz ? flush(f, s[0]) : s[0]) & 0x7fff);
      });
      both(forms, "neg" + tail, is_bf16, 1, 80, "9.7.4.5", [=, &f](const uint64_t* s) {
        return exactly(f, (ftz ? flush(f, s[0]) : s[0]) ^ 0x8000);
      });
    }
  }
}

void extremes(Forms& forms) {
  for (const bool is_bf16 : {false, true}) {
    const Format& f = is_bf16 ? kBf16 : kF16;
    for (const bool is_min : {true, false}) {
      for (int bits = 0; bits < 8; ++bits) {
        const bool ftz = bits & 1, propagate = bits & 2, xorsign = bits & 4;
        if (ftz && is_bf16) continue;
        both(forms,
             std::string(is_min ? "min" : "max") + (ftz ? ".ftz" : "") + (propagate ? ".NaN" : "") +
                 (xorsign ? ".xorsign.abs" : ""),
             is_bf16, 2, xorsign ? 89u : 80u, "9.7.4.7", [=, &f](const uint64_t* s) {
               return define_min_max(f, is_min, propagate, xorsign, ftz ? flush(f, s[0]) : s[0],
                                     ftz ? flush(f, s[1]) : s[1]);
             });
      }
    }
  }
}

}  // namespace

std::vector<Form> half_forms() {
  Forms forms;
  sums_and_products(forms);
  signs(forms);
  extremes(forms);
  return forms;
}

}  // namespace kv::simt::semantics
