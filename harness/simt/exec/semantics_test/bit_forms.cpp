// Bits: counting, fields, shifts, permutes, logic. PTX ISA 9.0 sections 9.7.1.14 to 9.7.1.22,
// 9.7.8 and 9.7.9.7.
#include <bit>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

std::string dotted(const char* opcode, Operand type) {
  return std::string(opcode) + "." + std::string(type);
}

uint64_t reversed(uint64_t value, int bits) {
  uint64_t result = 0;
  for (int i = 0; i < bits; ++i) result |= (value >> i & 1) << (bits - 1 - i);
  return result;
}

void counts(Forms& forms) {
  for (const char* type : {"b32", "b64"}) {
    const int bits = type[1] == '3' ? 32 : 64;
    forms.push_back(
        {.text = dotted("popc", type),
         .to = {"u32"},
         .from = {type},
         .define = [](const uint64_t* s, Outcome* d) { d->want = uint64_t(std::popcount(s[0])); },
         .section = "9.7.1.14"});
    forms.push_back(
        {.text = dotted("clz", type),
         .to = {"u32"},
         .from = {type},
         .define = [=](const uint64_t* s,
                       Outcome* d) { d->want = uint64_t(std::countl_zero(s[0]) - (64 - bits)); },
         .section = "9.7.1.15"});
    forms.push_back(
        {.text = dotted("brev", type),
         .to = {type},
         .from = {type},
         .define = [=](const uint64_t* s, Outcome* d) { d->want = reversed(s[0], bits); },
         .section = "9.7.1.18"});
  }
}

/// The most significant bit that differs from the sign.
void find_bits(Forms& forms) {
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    for (const bool shift_amount : {false, true}) {
      const Integer t(type);
      forms.push_back({.text = dotted(shift_amount ? "bfind.shiftamt" : "bfind", type),
                       .to = {"u32"},
                       .from = {type},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             uint64_t a = s[0];
                             if (t.value(a) < 0) a = ~a & t.mask();
                             int at = t.bits - 1;
                             while (at >= 0 && !(a >> at & 1)) --at;
                             d->want = at < 0 ? 0xffffffff
                                              : uint64_t(shift_amount ? t.bits - 1 - at : at);
                           },
                       .section = "9.7.1.16"});
    }
  }
}

/// bfe: position and length are the low 8 bits of their operands; bits beyond the field are zero or
/// copies of the field's sign, which is the most significant bit of a when the field passes it.
void extract(Forms& forms) {
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    const Integer t(type);
    forms.push_back({.text = dotted("bfe", type),
                     .to = {type},
                     .from = {type, "shift32", "shift32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const int msb = t.bits - 1;
                           const int position = int(s[1] & 0xff), length = int(s[2] & 0xff);
                           uint64_t sign = 0;
                           if (t.is_signed && length != 0) {
                             sign = s[0] >> std::min(position + length - 1, msb) & 1;
                           }
                           for (int i = 0; i <= msb; ++i) {
                             const bool inside = i < length && position + i <= msb;
                             d->want |= (inside ? s[0] >> (position + i) & 1 : sign) << i;
                           }
                         },
                     .section = "9.7.1.19"});
  }
}

void insert(Forms& forms) {
  for (const char* type : {"b32", "b64"}) {
    const int msb = type[1] == '3' ? 31 : 63;
    forms.push_back({.text = dotted("bfi", type),
                     .to = {type},
                     .from = {type, type, "shift32", "shift32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const int position = int(s[2] & 0xff), length = int(s[3] & 0xff);
                           d->want = s[1];
                           for (int i = 0; i < length && position + i <= msb; ++i) {
                             const uint64_t bit = uint64_t{1} << (position + i);
                             d->want = (s[0] >> i & 1) ? d->want | bit : d->want & ~bit;
                           }
                         },
                     .section = "9.7.1.20"});
  }
}

/// szext: sign- or zero-extends from bit b-1. bmsk: b ones from bit a.
void masks(Forms& forms) {
  for (const bool clamp : {false, true}) {
    const char* mode = clamp ? ".clamp" : ".wrap";
    for (const char* type : {"u32", "s32"}) {
      const bool is_signed = type[0] == 's';
      forms.push_back({.text = std::string("szext") + mode + "." + type,
                       .to = {type},
                       .from = {type, "shift32"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             const uint64_t n = clamp ? std::min<uint64_t>(s[1], 32) : s[1] & 31;
                             const uint64_t field =
                                 n == 32 ? s[0] : s[0] & ((uint64_t{1} << n) - 1);
                             const bool fill =
                                 is_signed && n != 0 && n < 32 && (field >> (n - 1) & 1);
                             d->want = uint32_t(fill ? field | ~((uint64_t{1} << n) - 1) : field);
                           },
                       .section = "9.7.1.21",
                       .sm = 80});
    }
    forms.push_back({.text = std::string("bmsk") + mode + ".b32",
                     .to = {"b32"},
                     .from = {"shift32", "shift32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           const uint64_t a = clamp ? std::min<uint64_t>(s[0], 32) : s[0] & 31;
                           const uint64_t b = clamp ? std::min<uint64_t>(s[1], 32) : s[1] & 31;
                           d->want = uint32_t(((uint64_t{1} << b) - 1) << a);
                         },
                     .section = "9.7.1.22"});
  }
}

void logic(Forms& forms) {
  struct Op {
    const char* name;
    uint64_t (*define)(uint64_t, uint64_t);
  };
  const Op ops[] = {{"and", [](uint64_t a, uint64_t b) { return a & b; }},
                    {"or", [](uint64_t a, uint64_t b) { return a | b; }},
                    {"xor", [](uint64_t a, uint64_t b) { return a ^ b; }}};
  for (const char* type : {"pred", "b16", "b32", "b64"}) {
    const uint64_t mask = type[0] == 'p' ? 1 : Integer(type).mask();
    for (const Op& op : ops) {
      forms.push_back(
          {.text = dotted(op.name, type),
           .to = {type},
           .from = {type, type},
           .define = [=](const uint64_t* s, Outcome* d) { d->want = op.define(s[0], s[1]); },
           .section = "9.7.8"});
    }
    forms.push_back({.text = dotted("not", type),
                     .to = {type},
                     .from = {type},
                     .define = [=](const uint64_t* s, Outcome* d) { d->want = ~s[0] & mask; },
                     .section = "9.7.8.4"});
    if (type[0] == 'p') continue;
    forms.push_back({.text = dotted("cnot", type),
                     .to = {type},
                     .from = {type},
                     .define = [](const uint64_t* s, Outcome* d) { d->want = s[0] == 0; },
                     .section = "9.7.8.5"});
  }
  for (const int table : {0x80, 0xe8, 0x96, 0x1b, 0xca, 0x00, 0xff}) {
    forms.push_back({.text = "lop3.b32 $0, $1, $2, $3, " + std::to_string(table) + ";",
                     .to = {"b32"},
                     .from = {"b32", "b32", "b32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           for (int i = 0; i < 32; ++i) {
                             const int index =
                                 int((s[0] >> i & 1) << 2 | (s[1] >> i & 1) << 1 | (s[2] >> i & 1));
                             d->want |= uint64_t(table >> index & 1) << i;
                           }
                         },
                     .section = "9.7.8.6"});
  }
}

/// Counts beyond the width are clamped to it.
void shifts(Forms& forms) {
  for (const char* type : {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"}) {
    const Integer t(type);
    if (type[0] == 'b') {
      forms.push_back({.text = dotted("shl", type),
                       .to = {type},
                       .from = {type, "shift32"},
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             d->want = s[1] >= uint64_t(t.bits) ? 0 : t.wrap(Wide(s[0]) << s[1]);
                           },
                       .section = "9.7.8.8"});
    }
    forms.push_back({.text = dotted("shr", type),
                     .to = {type},
                     .from = {type, "shift32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d->want =
                               t.wrap(t.value(s[0]) >> std::min<uint64_t>(s[1], uint64_t(t.bits)));
                         },
                     .section = "9.7.8.9"});
  }
  for (const bool left : {true, false}) {
    for (const bool clamp : {true, false}) {
      forms.push_back(
          {.text = std::string("shf.") + (left ? "l." : "r.") + (clamp ? "clamp" : "wrap") + ".b32",
           .to = {"b32"},
           .from = {"b32", "b32", "shift32"},
           .define =
               [=](const uint64_t* s, Outcome* d) {
                 const uint64_t both = s[0] | s[1] << 32;
                 const uint64_t n = clamp ? std::min<uint64_t>(s[2], 32) : s[2] & 31;
                 d->want = uint32_t(left ? both >> (32 - n) : both >> n);
               },
           .section = "9.7.8.7"});
    }
  }
}

/// Byte i of the result is byte selector[i] of {b, a}, or its sign replicated.
void permutes(Forms& forms) {
  const auto byte = [](const uint64_t* s, uint64_t selector) {
    const uint64_t value = (s[0] | s[1] << 32) >> (8 * (selector & 7)) & 0xff;
    return (selector & 8) ? ((value & 0x80) ? uint64_t{0xff} : uint64_t{0}) : value;
  };
  forms.push_back({.text = "prmt.b32",
                   .to = {"b32"},
                   .from = {"b32", "b32", "b32"},
                   .define =
                       [=](const uint64_t* s, Outcome* d) {
                         for (int i = 0; i < 4; ++i)
                           d->want |= byte(s, s[2] >> (4 * i) & 15) << (8 * i);
                       },
                   .section = "9.7.9.7"});
  struct Mode {
    const char* name;
    uint8_t selectors[4][4];  // for c = 0..3, bytes from low to high
  };
  constexpr Mode kModes[] = {
      {"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
      {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
      {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
      {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
      {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}},
  };
  for (const Mode& mode : kModes) {
    forms.push_back({.text = std::string("prmt.b32.") + mode.name,
                     .to = {"b32"},
                     .from = {"b32", "b32", "b32"},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           for (int i = 0; i < 4; ++i)
                             d->want |= byte(s, mode.selectors[s[2] & 3][i]) << (8 * i);
                         },
                     .section = "9.7.9.7"});
  }
}

}  // namespace

std::vector<Form> bit_forms() {
  Forms forms;
  counts(forms);
  find_bits(forms);
  extract(forms);
  insert(forms);
  masks(forms);
  logic(forms);
  shifts(forms);
  permutes(forms);
  return forms;
}

}  // namespace kv::simt::semantics
