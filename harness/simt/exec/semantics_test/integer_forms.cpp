// Integer arithmetic, PTX ISA 9.0 sections 9.7.1 and 9.7.2.
#include <deque>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

constexpr const char* kTypes[] = {"s16", "u16", "s32", "u32", "s64", "u64"};
constexpr const char* kWidening[][2] = {
    {"s16", "s32"}, {"u16", "u32"}, {"s32", "s64"}, {"u32", "u64"}};

using Forms = std::vector<Form>;

/// A form of one destination whose sources and destination share a type.
template <class Define>
Form same(const std::string& opcode, Operand type, size_t sources, std::string_view section,
          Define define) {
  return {.text = opcode + "." + std::string(type),
          .to = {type},
          .from = std::vector<Operand>(sources, type),
          .define =
              [=, t = Integer(type)](const uint64_t* s, Outcome* d) {
                d->want = t.wrap(define(t, t.value(s[0]), sources > 1 ? t.value(s[1]) : 0,
                                        sources > 2 ? t.value(s[2]) : 0));
              },
          .section = section};
}

Wide high(Integer t, Wide product) { return Wide((unsigned __int128)(product) >> t.bits); }

void sums(Forms& forms) {
  for (const char* type : kTypes) {
    forms.push_back(
        same("add", type, 2, "9.7.1.1", [](Integer, Wide a, Wide b, Wide) { return a + b; }));
    forms.push_back(
        same("sub", type, 2, "9.7.1.2", [](Integer, Wide a, Wide b, Wide) { return a - b; }));
  }
  forms.push_back(same("add.sat", "s32", 2, "9.7.1.1",
                       [](Integer t, Wide a, Wide b, Wide) { return Wide(t.clamp(a + b)); }));
  forms.push_back(same("sub.sat", "s32", 2, "9.7.1.2",
                       [](Integer t, Wide a, Wide b, Wide) { return Wide(t.clamp(a - b)); }));
}

void products(Forms& forms) {
  for (const char* type : kTypes) {
    forms.push_back(
        same("mul.lo", type, 2, "9.7.1.3", [](Integer, Wide a, Wide b, Wide) { return a * b; }));
    forms.push_back(same("mul.hi", type, 2, "9.7.1.3",
                         [](Integer t, Wide a, Wide b, Wide) { return high(t, a * b); }));
    forms.push_back(same("mad.lo", type, 3, "9.7.1.4",
                         [](Integer, Wide a, Wide b, Wide c) { return a * b + c; }));
    forms.push_back(same("mad.hi", type, 3, "9.7.1.4",
                         [](Integer t, Wide a, Wide b, Wide c) { return high(t, a * b) + c; }));
  }
  forms.push_back(same("mad.hi.sat", "s32", 3, "9.7.1.4", [](Integer t, Wide a, Wide b, Wide c) {
    return Wide(t.clamp((a * b >> 32) + c));
  }));
  for (const auto& [narrow, wide] : kWidening) {
    const Integer n(narrow), w(wide);
    forms.push_back({.text = std::string("mul.wide.") + narrow,
                     .to = {wide},
                     .from = {narrow, narrow},
                     .define = [=](const uint64_t* s,
                                   Outcome* d) { d->want = w.wrap(n.value(s[0]) * n.value(s[1])); },
                     .section = "9.7.1.3"});
    forms.push_back({.text = std::string("mad.wide.") + narrow,
                     .to = {wide},
                     .from = {narrow, narrow, wide},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d->want = w.wrap(n.value(s[0]) * n.value(s[1]) + w.value(s[2]));
                         },
                     .section = "9.7.1.4"});
  }
}

/// Products of the low 24 bits.
void products24(Forms& forms) {
  for (const char* type : {"s32", "u32"}) {
    const auto low24 = [](Integer t, Wide a) {
      const Wide low = a & 0xffffff;
      return t.is_signed && (low & 0x800000) ? low - 0x1000000 : low;
    };
    const auto lo = [=](Integer t, Wide a, Wide b) { return low24(t, a) * low24(t, b); };
    const auto hi = [=](Integer t, Wide a, Wide b) { return lo(t, a, b) >> 16; };
    forms.push_back(same("mul24.lo", type, 2, "9.7.1.5",
                         [=](Integer t, Wide a, Wide b, Wide) { return lo(t, a, b); }));
    forms.push_back(same("mul24.hi", type, 2, "9.7.1.5",
                         [=](Integer t, Wide a, Wide b, Wide) { return hi(t, a, b); }));
    forms.push_back(same("mad24.lo", type, 3, "9.7.1.6",
                         [=](Integer t, Wide a, Wide b, Wide c) { return lo(t, a, b) + c; }));
    forms.push_back(same("mad24.hi", type, 3, "9.7.1.6",
                         [=](Integer t, Wide a, Wide b, Wide c) { return hi(t, a, b) + c; }));
  }
}

void differences(Forms& forms) {
  for (const char* type : kTypes) {
    forms.push_back(same("sad", type, 3, "9.7.1.7", [](Integer, Wide a, Wide b, Wide c) {
      return c + (a < b ? b - a : a - b);
    }));
    forms.push_back(same("min", type, 2, "9.7.1.12",
                         [](Integer, Wide a, Wide b, Wide) { return a < b ? a : b; }));
    forms.push_back(same("max", type, 2, "9.7.1.13",
                         [](Integer, Wide a, Wide b, Wide) { return a > b ? a : b; }));
    if (type[0] != 's') continue;
    forms.push_back(same("abs", type, 1, "9.7.1.10",
                         [](Integer, Wide a, Wide, Wide) { return a < 0 ? -a : a; }));
    forms.push_back(
        same("neg", type, 1, "9.7.1.11", [](Integer, Wide a, Wide, Wide) { return -a; }));
  }
  for (const char* name : {"min.relu", "max.relu"}) {
    const bool is_min = name[1] == 'i';
    Form form = same(name, "s32", 2, "9.7.1.12", [=](Integer, Wide a, Wide b, Wide) {
      const Wide chosen = (a < b) == is_min ? a : b;
      return chosen < 0 ? Wide(0) : chosen;
    });
    form.sm = 90;
    forms.push_back(form);
  }
}

/// A zero divisor gives an unspecified, machine-specific value; so does INT_MIN / -1.
void quotients(Forms& forms) {
  for (const char* type : kTypes) {
    for (const bool remainder : {false, true}) {
      const Integer t(type);
      forms.push_back({.text = (remainder ? "rem." : "div.") + std::string(type),
                       .to = {type},
                       .from = {type, type},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             const Wide a = t.value(s[0]), b = t.value(s[1]);
                             d->unspecified = b == 0 || (b == -1 && a == t.least());
                             if (!d->unspecified) d->want = t.wrap(remainder ? a % b : a / b);
                           },
                       .section = remainder ? "9.7.1.9" : "9.7.1.8"});
    }
  }
}

/// Dot products of four bytes, or of two bytes and two halves.
void dots(Forms& forms) {
  for (const char* a_type : {"u32", "s32"}) {
    for (const char* b_type : {"u32", "s32"}) {
      const bool a_signed = a_type[0] == 's', b_signed = b_type[0] == 's';
      const Integer a8(a_signed ? "s8" : "u8"), b8(b_signed ? "s8" : "u8");
      const Integer a16(a_signed ? "s16" : "u16");
      const char* c_type = a_signed || b_signed ? "s32" : "u32";
      const std::string types = std::string(".") + a_type + "." + b_type;
      forms.push_back({.text = "dp4a" + types,
                       .to = {c_type},
                       .from = {a_type, b_type, c_type},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             Wide sum = Wide(s[2]);
                             for (int i = 0; i < 32; i += 8)
                               sum += a8.value(s[0] >> i) * b8.value(s[1] >> i);
                             d->want = uint32_t(sum);
                           },
                       .section = "9.7.1.23"});
      for (const bool high_half : {false, true}) {
        forms.push_back({.text = (high_half ? "dp2a.hi" : "dp2a.lo") + types,
                         .to = {c_type},
                         .from = {a_type, b_type, c_type},
                         .define =
                             [=](const uint64_t* s, Outcome* d) {
                               const uint64_t b = s[1] >> (high_half ? 16 : 0);
                               d->want = uint32_t(Wide(s[2]) + a16.value(s[0]) * b8.value(b) +
                                                  a16.value(s[0] >> 16) * b8.value(b >> 8));
                             },
                         .section = "9.7.1.24"});
      }
    }
  }
}

/// The carry between two words of 64 bits, and of a carry into a difference.
void wide_carries(Forms& forms) {
  using Unsigned = unsigned __int128;
  struct Pair {
    const char* text;
    std::function<Unsigned(Unsigned, Unsigned)> define;
  };
  const Pair pairs[] = {
      {"add.cc.u64 $0, $2, $4; addc.u64 $1, $3, $5;", [](Unsigned a, Unsigned b) { return a + b; }},
      {"add.cc.s64 $0, $2, $4; addc.cc.s64 $1, $3, $5;",
       [](Unsigned a, Unsigned b) { return a + b; }},
      {"sub.cc.u64 $0, $2, $4; subc.cc.u64 $1, $3, $5;",
       [](Unsigned a, Unsigned b) { return a - b; }},
      {"mad.lo.cc.u64 $0, $2, $4, 0; madc.hi.cc.u64 $1, $2, $4, 0;",
       [](Unsigned a, Unsigned b) { return Unsigned(uint64_t(a)) * uint64_t(b); }},
      {"mad.lo.cc.u64 $0, $2, $4, $2; madc.hi.u64 $1, $2, $4, 0;",
       [](Unsigned a, Unsigned b) { return Unsigned(uint64_t(a)) * uint64_t(b) + uint64_t(a); }},
  };
  for (const Pair& pair : pairs) {
    forms.push_back({.text = pair.text,
                     .to = {"u64", "u64"},
                     .from = {"u64", "u64", "u64", "u64"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const Unsigned got = pair.define(Unsigned(s[1]) << 64 | s[0],
                                                            Unsigned(s[3]) << 64 | s[2]);
                           d[0].want = uint64_t(got);
                           d[1].want = uint64_t(got >> 64);
                         },
                     .section = "9.7.2"});
  }
}

/// Carries through CC.CF: pairs of instructions on 64-bit numbers in halves.
void carries(Forms& forms) {
  struct Pair {
    const char* text;
    std::function<uint64_t(uint64_t, uint64_t, uint64_t)> define;
  };
  const Pair pairs[] = {
      {"add.cc.u32 $0, $2, $4; addc.u32 $1, $3, $5;",
       [](uint64_t a, uint64_t b, uint64_t) { return a + b; }},
      {"sub.cc.u32 $0, $2, $4; subc.u32 $1, $3, $5;",
       [](uint64_t a, uint64_t b, uint64_t) { return a - b; }},
      {"add.cc.s32 $0, $2, $4; addc.cc.s32 $1, $3, $5;",
       [](uint64_t a, uint64_t b, uint64_t) { return a + b; }},
  };
  for (const Pair& pair : pairs) {
    forms.push_back({.text = pair.text,
                     .to = {"u32", "u32"},
                     .from = {"u32", "u32", "u32", "u32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const uint64_t sum =
                               pair.define(s[0] | s[1] << 32, s[2] | s[3] << 32, 0);
                           d[0].want = uint32_t(sum);
                           d[1].want = sum >> 32;
                         },
                     .section = "9.7.2"});
  }
  forms.push_back({.text = "mad.lo.cc.u32 $0, $2, $3, $4; madc.hi.u32 $1, $2, $3, $5;",
                   .to = {"u32", "u32"},
                   .from = {"u32", "u32", "u32", "u32"},
                   .define =
                       [](const uint64_t* s, Outcome* d) {
                         const uint64_t sum = s[0] * s[1] + (s[2] | s[3] << 32);
                         d[0].want = uint32_t(sum);
                         d[1].want = sum >> 32;
                       },
                   .section = "9.7.2.5"});
  wide_carries(forms);
}

}  // namespace

std::vector<Form> integer_forms() {
  Forms forms;
  sums(forms);
  products(forms);
  products24(forms);
  differences(forms);
  quotients(forms);
  dots(forms);
  carries(forms);
  return forms;
}

}  // namespace kv::simt::semantics
