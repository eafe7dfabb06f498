// atom and red: the old value and the memory afterwards. Each thread has a cell of its own, so that
// the result does not depend on an order; sums by many threads to one cell are apart. PTX ISA 9.0
// sections 9.7.13.5 and 9.7.13.6.
#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {

Outcome define_min_max(const Format& f, bool is_min, bool propagate, bool xorsign, uint64_t a,
                       uint64_t b);  // float_forms.cpp

namespace {

using Forms = std::vector<Form>;
using Update = std::function<Outcome(uint64_t old, uint64_t b, uint64_t c, bool shared)>;

struct Space {
  const char* name;
  const char* setup;
};
constexpr Space kSpaces[] = {
    {".global", ".reg .b64 p; mov.u64 p, %o;"},
    {".shared",
     ".shared .align 16 .b8 cell[2048]; .reg .b32 t; .reg .b64 p, q; mov.u32 t, %tid.x; "
     "mul.wide.u32 p, t, 16; "
     "mov.u64 q, cell; add.s64 p, p, q;"},
    {"", ".reg .b64 p; cvta.global.u64 p, %o;"},
};

/// The operation in each space, as atom and as red; cas has two operands and no red.
void each(Forms& forms, const std::string& op, Operand type, size_t operands, const Update& update,
          const std::string& modifiers = "", uint32_t sm = 80) {
  const uint32_t bytes = type.ends_with("64")                               ? 8
                         : type == "f16" || type == "bf16" || type == "b16" ? 2
                                                                            : 4;
  const std::string bits = ".b" + std::to_string(8 * bytes);
  for (const Space& space : kSpaces) {
    const std::string name = space.name;
    const bool shared = name == ".shared";
    const std::string tail = modifiers + name + "." + op + "." + std::string(type);
    const std::string begin = "{ " + std::string(space.setup) + " st" + name + bits + " [p], $2; ";
    const std::string end = " ld" + name + bits + " $1, [p]; }";
    const std::string values = operands == 2 ? "$3, $4;" : "$3;";
    forms.push_back({.text = begin + "atom" + tail + " $0, [p], " + values + end,
                     .to = {type, type},
                     .from = std::vector<Operand>(1 + operands, type),
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d[0].want = s[0];
                           d[1] = update(s[0], s[1], operands == 2 ? s[2] : 0, shared);
                         },
                     .section = "9.7.13.5",
                     .sm = sm,
                     .pairs_max = 2500});
    const bool acquires = modifiers.find("acq") != modifiers.npos;
    if (op == "exch" || op == "cas" || acquires) continue;
    forms.push_back({.text = begin + "mov" + bits + " $0, $2; red" + tail + " [p], " + values + end,
                     .to = {type, type},
                     .from = {type, type},
                     .define =
                         [=](const uint64_t* s, Outcome* d) {
                           d[0].want = s[0];
                           d[1] = update(s[0], s[1], 0, shared);
                         },
                     .section = "9.7.13.6",
                     .sm = sm,
                     .pairs_max = 2500});
  }
}

Outcome bits(uint64_t value) { return {.want = value}; }

void integers(Forms& forms) {
  for (const char* type : {"u32", "s32", "u64"}) {
    const Integer t(type);
    each(forms, "add", type, 1, [=](uint64_t a, uint64_t b, uint64_t, bool) {
      return bits(t.wrap(t.value(a) + t.value(b)));
    });
  }
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    const Integer t(type);
    each(forms, "min", type, 1, [=](uint64_t a, uint64_t b, uint64_t, bool) {
      return bits(t.value(a) < t.value(b) ? a : b);
    });
    each(forms, "max", type, 1, [=](uint64_t a, uint64_t b, uint64_t, bool) {
      return bits(t.value(a) > t.value(b) ? a : b);
    });
  }
  for (const char* type : {"b32", "b64"}) {
    each(forms, "and", type, 1, [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(a & b); });
    each(forms, "or", type, 1, [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(a | b); });
    each(forms, "xor", type, 1, [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(a ^ b); });
    each(forms, "exch", type, 1, [](uint64_t, uint64_t b, uint64_t, bool) { return bits(b); });
  }
  for (const char* type : {"b16", "b32", "b64"}) {
    each(forms, "cas", type, 2,
         [](uint64_t a, uint64_t b, uint64_t c, bool) { return bits(a == b ? c : a); });
  }
  each(forms, "inc", "u32", 1,
       [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(a >= b ? 0 : a + 1); });
  each(forms, "dec", "u32", 1,
       [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(a == 0 || a > b ? b : a - 1); });
}

/// f32 sums in global memory flush subnormals (section 9.7.13.5); shared memory keeps them. The
/// generic form goes by the address, which here is global.
void floats(Forms& forms) {
  const auto sum = [](const Format& f, uint64_t a, uint64_t b, bool ftz) {
    const uint64_t x = ftz ? flush(f, a) : a, y = ftz ? flush(f, b) : b;
    return finish(f, add(read(f, x), read(f, y), Round::kNearest), {.ftz = ftz});
  };
  each(forms, "add", "f32", 1,
       [=](uint64_t a, uint64_t b, uint64_t, bool shared) { return sum(kF32, a, b, !shared); });
  each(forms, "add", "f64", 1,
       [=](uint64_t a, uint64_t b, uint64_t, bool) { return sum(kF64, a, b, false); });
  const auto half = [=](const Format& f) {
    return [=, &f](uint64_t a, uint64_t b, uint64_t, bool) { return sum(f, a, b, false); };
  };
  const auto packed = [=](const Format& f) {
    return [=, &f](uint64_t a, uint64_t b, uint64_t, bool) {
      return pack(sum(f, a & 0xffff, b & 0xffff, false), sum(f, a >> 16, b >> 16, false));
    };
  };
  each(forms, "add.noftz", "f16", 1, half(kF16));
  each(forms, "add.noftz", "f16x2", 1, packed(kF16));
  each(forms, "add.noftz", "bf16", 1, half(kBf16), "", 90);
  each(forms, "add.noftz", "bf16x2", 1, packed(kBf16), "", 90);
}

/// Vectors of two, in global memory only: each element is an atomic of its own.
void vectors(Forms& forms) {
  const auto sum = [](const Format& f, uint64_t a, uint64_t b, bool ftz) {
    const uint64_t x = ftz ? flush(f, a) : a, y = ftz ? flush(f, b) : b;
    return finish(f, add(read(f, x), read(f, y), Round::kNearest), {.ftz = ftz});
  };
  const auto each_pair = [&](const std::string& tail, Operand type, auto define) {
    const std::string begin = "{ .reg .b64 p; mov.u64 p, %o; st.global.v2.b32 [p], {$4, $5}; ";
    const std::string end = " ld.global.v2.b32 {$2, $3}, [p]; }";
    for (const bool returns : {true, false}) {
      const std::string update =
          returns ? "atom.global." + tail + " {$0, $1}, [p], {$6, $7};"
                  : "mov.b32 $0, $4; mov.b32 $1, $5; red.global." + tail + " [p], {$6, $7};";
      forms.push_back({.text = begin + update + end,
                       .to = std::vector<Operand>(4, type),
                       .from = std::vector<Operand>(4, type),
                       .define =
                           [=](const uint64_t* s, Outcome* d) {
                             for (int k = 0; k < 2; ++k) {
                               d[k].want = s[k];
                               d[2 + k] = define(s[k], s[2 + k]);
                             }
                           },
                       .section = returns ? "9.7.13.5" : "9.7.13.6",
                       .sm = 90,
                       .pairs_max = 2500});
    }
  };
  each_pair("add.v2.f32", "f32", [=](uint64_t a, uint64_t b) { return sum(kF32, a, b, true); });
  each_pair("add.noftz.v2.f16x2", "f16x2", [=](uint64_t a, uint64_t b) {
    return pack(sum(kF16, a & 0xffff, b & 0xffff, false), sum(kF16, a >> 16, b >> 16, false));
  });
}

void orders(Forms& forms) {
  for (const char* modifiers : {".relaxed.gpu", ".relaxed.cta", ".acquire.gpu", ".release.sys",
                                ".acq_rel.gpu", ".gpu", ".cta"}) {
    each(
        forms, "add", "u32", 1,
        [](uint64_t a, uint64_t b, uint64_t, bool) { return bits(uint32_t(a + b)); }, modifiers);
  }
}

/// 32 lanes add to one cell: the sum, and old values that are the partial sums in some order.
void contended(Forms& forms) {
  constexpr const char* kBegin =
      "{ .shared .align 4 .b32 cell; .reg .pred f; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 f, "
      "t, 0; "
      "@f st.shared.b32 [cell], 0; bar.sync 0; ";
  constexpr const char* kEnd = " bar.sync 0; ld.shared.b32 $1, [cell]; }";
  const auto define = [](bool returns) {
    return [=](uint64_t, const uint64_t* s, Outcome* d) {
      uint32_t sum = 0;
      for (int lane = 0; lane < 32; ++lane) sum += uint32_t(s[lane]);
      for (int lane = 0; lane < 32; ++lane) {
        d[2 * lane].unspecified = returns;
        d[2 * lane].want = s[lane];
        d[2 * lane + 1].want = sum;
      }
    };
  };
  forms.push_back({.text = std::string(kBegin) + "atom.shared.add.u32 $0, [cell], $2;" + kEnd,
                   .to = {"u32", "u32"},
                   .from = {"u32"},
                   .section = "9.7.13.5",
                   .pairs_max = 600,
                   .define_warp = define(true),
                   .threads = 32});
  forms.push_back(
      {.text = std::string(kBegin) + "mov.b32 $0, $2; red.shared.add.u32 [cell], $2;" + kEnd,
       .to = {"u32", "u32"},
       .from = {"u32"},
       .section = "9.7.13.6",
       .pairs_max = 600,
       .define_warp = define(false),
       .threads = 32});
}

}  // namespace

std::vector<Form> atomic_forms() {
  Forms forms;
  integers(forms);
  floats(forms);
  vectors(forms);
  orders(forms);
  contended(forms);
  return forms;
}

}  // namespace kv::simt::semantics
