// Comparison and selection, PTX ISA 9.0 sections 9.7.6 and 9.7.7.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

bool is_float(std::string_view type) { return type.find('f') != type.npos; }

/// Section 9.3.1. `order` is -1, 0, 1 or 2 for unordered.
bool holds(std::string_view op, int order) {
  if (op == "num") return order != 2;
  if (op == "nan") return order == 2;
  if (order == 2) return op.size() == 3;  // equ, neu, ltu, ...
  const std::string_view base = op.substr(0, 2);
  if (base == "eq") return order == 0;
  if (base == "ne") return order != 0;
  if (base == "lt" || base == "lo") return order < 0;
  if (base == "le" || base == "ls") return order <= 0;
  if (base == "gt" || base == "hi") return order > 0;
  return order >= 0;  // ge, hs
}

int order_of(std::string_view type, bool ftz, uint64_t a, uint64_t b) {
  if (is_float(type)) {
    const Format& format = format_of(type);
    return ftz ? compare(format, flush(format, a), flush(format, b)) : compare(format, a, b);
  }
  const Integer t(type);
  const Wide left = t.value(a), right = t.value(b);
  return (left > right) - (left < right);
}

std::vector<std::string> operators_of(std::string_view type) {
  if (is_float(type)) {
    return {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
            "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  }
  if (type[0] == 'b') return {"eq", "ne"};
  if (type[0] == 's') return {"eq", "ne", "lt", "le", "gt", "ge"};
  return {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
}

bool combine(std::string_view op, bool t, bool c) {
  return op == "and" ? t && c : op == "or" ? t || c : t != c;
}

void setp(Forms& forms, const std::string& op, std::string_view type, bool ftz, uint32_t sm) {
  const std::string tail = std::string(ftz ? ".ftz." : ".") + std::string(type);
  forms.push_back(
      {.text = "setp." + op + tail,
       .to = {"pred"},
       .from = {type, type},
       .define = [=](const uint64_t* s,
                     Outcome* d) { d->want = holds(op, order_of(type, ftz, s[0], s[1])); },
       .section = "9.7.6.2",
       .sm = sm,
       .pairs_max = 4000});
  if (op != "lt" && op != "eq" && op != "neu") return;
  for (const char* boolean : {"and", "or", "xor"}) {
    for (const bool negated : {false, true}) {
      const auto define = [=](const uint64_t* s, Outcome* d, bool complement) {
        const bool t = holds(op, order_of(type, ftz, s[0], s[1]));
        const bool c = (s[2] != 0) != negated;
        d[0].want = combine(boolean, t, c);
        if (complement) d[1].want = combine(boolean, !t, c);
      };
      const std::string opcode = "setp." + op + "." + boolean + tail;
      const char* const c = negated ? "!$" : "$";
      // Scalar halves have no second destination.
      const bool half = type == "f16" || type == "bf16";
      Form form{
          .text = opcode + (half ? " $0, $1, $2, " : " $0|$1, $2, $3, ") + c + (half ? "3;" : "4;"),
          .to = {"pred"},
          .from = {type, type, "pred"},
          .define = [=](const uint64_t* s, Outcome* d) { define(s, d, !half); },
          .section = "9.7.6.2",
          .sm = sm,
          .pairs_max = 4000};
      if (!half) form.to.push_back("pred");
      forms.push_back(std::move(form));
    }
  }
}

void set(Forms& forms, const std::string& op, std::string_view to, std::string_view type,
         bool ftz) {
  const uint64_t yes = to == "f32" ? 0x3f800000 : 0xffffffff;
  forms.push_back(
      {.text = "set." + op + (ftz ? ".ftz." : ".") + std::string(to) + "." + std::string(type),
       .to = {to},
       .from = {type, type},
       .define =
           [=](const uint64_t* s, Outcome* d) {
             d->want = holds(op, order_of(type, ftz, s[0], s[1])) ? yes : 0;
           },
       .section = "9.7.6.1",
       .pairs_max = 3000});
}

/// Two comparisons of halves: two predicates, or two masks or numbers packed.
void packed(Forms& forms, std::string_view type, bool ftz, uint32_t sm) {
  const std::string_view half = type.substr(0, type.size() - 2);
  const std::string tail = std::string(ftz ? ".ftz." : ".");
  const uint64_t one = half == "f16" ? 0x3c00 : 0x3f80;
  for (const std::string& op : operators_of(half)) {
    const auto low = [=](const uint64_t* s) {
      return holds(op, order_of(half, ftz, s[0] & 0xffff, s[1] & 0xffff));
    };
    const auto high = [=](const uint64_t* s) {
      return holds(op, order_of(half, ftz, s[0] >> 16, s[1] >> 16));
    };
    forms.push_back({.text = "setp." + op + tail + std::string(type) + " $0|$1, $2, $3;",
                     .to = {"pred", "pred"},
                     .from = {type, type},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d[0].want = low(s);
                           d[1].want = high(s);
                         },
                     .section = "9.7.7.2",
                     .sm = sm,
                     .pairs_max = 3000});
    for (std::string_view to : {std::string_view("u32"), std::string_view("s32"), type}) {
      const uint64_t yes = to == type ? one : 0xffff;
      forms.push_back(
          {.text = "set." + op + tail + std::string(to) + "." + std::string(type),
           .to = {to},
           .from = {type, type},
           .define = [=](const uint64_t* s,
                         Outcome* d) { d->want = (low(s) ? yes : 0) | (high(s) ? yes << 16 : 0); },
           .section = "9.7.7.1",
           .sm = sm,
           .pairs_max = 2000});
    }
  }
}

void select(Forms& forms) {
  for (const char* type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"}) {
    forms.push_back({.text = std::string("selp.") + type,
                     .to = {type},
                     .from = {type, type, "pred"},
                     .define = [](const uint64_t* s, Outcome* d) { d->want = s[2] ? s[0] : s[1]; },
                     .section = "9.7.6.3",
                     .pairs_max = 4000});
    forms.push_back(
        {.text = std::string("slct.") + type + ".s32",
         .to = {type},
         .from = {type, type, "s32"},
         .define = [](const uint64_t* s,
                      Outcome* d) { d->want = int32_t(uint32_t(s[2])) >= 0 ? s[0] : s[1]; },
         .section = "9.7.6.4",
         .pairs_max = 4000});
  }
  for (const bool ftz : {false, true}) {
    forms.push_back({.text = ftz ? "slct.ftz.b32.f32" : "slct.b32.f32",
                     .to = {"b32"},
                     .from = {"b32", "b32", "f32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const int order = order_of("f32", ftz, s[2], 0);
                           d->want = order == 0 || order == 1 ? s[0] : s[1];
                         },
                     .section = "9.7.6.4",
                     .pairs_max = 4000});
  }
}

/// Sections 9.7.3.1 and 9.7.3.2: classification and sign.
void classify(Forms& forms) {
  for (const char* type : {"f32", "f64"}) {
    const Format& f = format_of(type);
    const auto magnitude = [&f](uint64_t a) { return a & (f.sign_bit() - 1); };
    struct Test {
      const char* name;
      std::function<bool(uint64_t)> define;
    };
    const Test tests[] = {
        {"finite", [=, &f](uint64_t a) { return magnitude(a) < f.infinity(); }},
        {"infinite", [=, &f](uint64_t a) { return magnitude(a) == f.infinity(); }},
        {"number", [&f](uint64_t a) { return !is_nan(f, a); }},
        {"notanumber", [&f](uint64_t a) { return is_nan(f, a); }},
        // Zeros count as normal.
        {"normal",
         [=, &f](uint64_t a) { return magnitude(a) < f.infinity() && !is_subnormal(f, a); }},
        {"subnormal", [&f](uint64_t a) { return is_subnormal(f, a); }}};
    for (const Test& test : tests) {
      forms.push_back(
          {.text = std::string("testp.") + test.name + "." + type,
           .to = {"pred"},
           .from = {type},
           .define = [=](const uint64_t* s, Outcome* d) { d->want = test.define(s[0]); },
           .section = "9.7.3.1"});
    }
    forms.push_back({.text = std::string("copysign.") + type,
                     .to = {type},
                     .from = {type, type},
                     .define =
                         [&f](const uint64_t* s, Outcome* d) {
                           *d = exactly(f, (s[0] & f.sign_bit()) | (s[1] & (f.sign_bit() - 1)));
                         },
                     .section = "9.7.3.2"});
  }
}

}  // namespace

std::vector<Form> compare_forms() {
  Forms forms;
  for (const char* type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"}) {
    for (const std::string& op : operators_of(type)) {
      setp(forms, op, type, false, 80);
      for (const char* to : {"u32", "s32", "f32"}) set(forms, op, to, type, false);
      if (std::string_view(type) != "f32") continue;
      setp(forms, op, type, true, 80);
      set(forms, op, "u32", type, true);
    }
  }
  for (const bool ftz : {false, true}) {
    for (const std::string& op : operators_of("f16")) setp(forms, op, "f16", ftz, 80);
    packed(forms, "f16x2", ftz, 80);
  }
  for (const std::string& op : operators_of("bf16")) setp(forms, op, "bf16", false, 90);
  packed(forms, "bf16x2", false, 90);
  select(forms);
  classify(forms);
  return forms;
}

}  // namespace kv::simt::semantics
