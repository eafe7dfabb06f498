// ld and st: spaces, types, vectors, cache operators, generic addresses; cvta and isspacep.
// PTX ISA 9.0 sections 9.7.9.8 to 9.7.9.13 and 9.7.9.18 to 9.7.9.20.
#include <cstring>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

/// A place of 16 bytes for each thread. `setup` leaves its address in `p`.
struct Place {
  const char* name;  // of the space in the opcode, with its dot; "" for generic
  const char* setup;
};

constexpr const char* kShared =
    ".shared .align 16 .b8 cell[2048]; .reg .b32 t; .reg .b64 p; mov.u32 t, %tid.x; mul.wide.u32 "
    "p, t, 16; "
    ".reg .b64 q; mov.u64 q, cell; add.s64 p, p, q;";
constexpr const char* kLocal = ".local .align 16 .b8 cell[16]; .reg .b64 p; mov.u64 p, cell;";

constexpr Place kPlaces[] = {
    {".global", ".reg .b64 p; mov.u64 p, %o;"},
    {".shared", kShared},
    {".local", kLocal},
    {"", ".reg .b64 p; cvta.global.u64 p, %o;"},
};
constexpr Place kGenericShared = {"", kShared}, kGenericLocal = {"", kLocal};

std::string generic_setup(const Place& place, const char* space) {
  return std::string(place.setup) + " cvta." + space + ".u64 p, p;";
}

int type_bits(std::string_view type) { return std::stoi(std::string(type.substr(1))); }

/// Bytes [offset, offset + bytes) of two 64-bit sources.
uint64_t bytes_of(const uint64_t* s, int offset, int bytes) {
  uint8_t raw[16];
  std::memcpy(raw, s, 16);
  uint64_t value = 0;
  std::memcpy(&value, raw + offset, size_t(bytes));
  return value;
}

std::string vector_text(int count) { return count == 1 ? "" : ".v" + std::to_string(count); }

/// Sources are put into the place by plain stores; the form under test reads them.
Form load(const std::string& opcode, const std::string& setup, const char* space, const char* type,
          int count, bool wide_register) {
  const int bits = type_bits(type), bytes = bits / 8;
  const Operand target = bits == 64 ? "b64" : bits == 32 || wide_register ? "b32" : "b16";
  const std::string plain = std::string("st") + space + ".b64 ";
  std::string text = "{ " + setup + " " + plain + "[p], $" + char('0' + count) + "; " + plain +
                     "[p+8], $" + char('0' + count + 1) + "; " + opcode + " " +
                     register_list(0, size_t(count)) + ", [p];" + " }";
  return {.text = text,
          .to = std::vector<Operand>(size_t(count), target),
          .from = {"b64", "b64"},
          .define =
              [=](const uint64_t* s, Outcome* d) {
                const Integer source(type), reg(target);
                for (int i = 0; i < count; ++i) {
                  d[i].want = reg.wrap(source.value(bytes_of(s, i * bytes, bytes)));
                }
              },
          .section = "9.7.9.8",
          .pairs_max = 1500};
}

Form store(const std::string& opcode, const std::string& setup, const char* space, const char* type,
           int count) {
  const int bits = type_bits(type), bytes = bits / 8;
  const Operand source = bits == 64 ? "b64" : bits == 32 ? "b32" : "b16";
  const std::string st = std::string("st") + space + ".b64 ",
                    ld = std::string("ld") + space + ".b64 ";
  std::string text = "{ " + setup + " .reg .b64 z; mov.b64 z, -1; " + st + "[p], z; " + st +
                     "[p+8], z; " + opcode + " [p], " + register_list(2, size_t(count)) + "; " +
                     ld + "$0, [p]; " + ld + "$1, [p+8]; }";
  return {.text = text,
          .to = {"b64", "b64"},
          .from = std::vector<Operand>(size_t(count), source),
          .define =
              [=](const uint64_t* s, Outcome* d) {
                uint8_t raw[16];
                std::memset(raw, 0xff, 16);
                for (int i = 0; i < count; ++i) std::memcpy(raw + i * bytes, &s[i], size_t(bytes));
                std::memcpy(&d[0].want, raw, 8);
                std::memcpy(&d[1].want, raw + 8, 8);
              },
          .section = "9.7.9.11",
          .pairs_max = 1500};
}

constexpr const char* kTypes[] = {"b8",  "u8",  "s8",  "b16", "u16", "s16", "b32",
                                  "u32", "s32", "f32", "b64", "u64", "s64", "f64"};

void each_place(Forms& forms, const Place& place, const std::string& setup) {
  for (const char* type : kTypes) {
    for (const int count : {1, 2, 4}) {
      if (count * type_bits(type) > 128) continue;
      const std::string tail = place.name + vector_text(count) + "." + type;
      forms.push_back(load("ld" + tail, setup, place.name, type, count, false));
      if (type_bits(type) < 32)
        forms.push_back(load("ld" + tail, setup, place.name, type, count, true));
      forms.push_back(store("st" + tail, setup, place.name, type, count));
    }
  }
}

void spaces(Forms& forms) {
  for (const Place& place : kPlaces) each_place(forms, place, place.setup);
  each_place(forms, kGenericShared, generic_setup(kGenericShared, "shared"));
  each_place(forms, kGenericLocal, generic_setup(kGenericLocal, "local"));
}

/// Cache operators, eviction priorities, prefetch sizes and memory orders change no value.
void modifiers(Forms& forms) {
  const char* const global = kPlaces[0].setup;
  for (const char* modifier :
       {".ca", ".cg", ".cs", ".lu", ".cv", ".L1::evict_last", ".L1::no_allocate",
        ".L1::evict_first", ".L2::64B", ".L2::128B", ".L2::256B", ".L1::no_allocate.L2::128B"}) {
    forms.push_back(
        load(std::string("ld.global") + modifier + ".u32", global, ".global", "u32", 1, false));
    forms.push_back(
        load(std::string("ld.global") + modifier + ".v4.f32", global, ".global", "f32", 4, false));
  }
  for (const char* order : {"ld.volatile.global", "ld.relaxed.gpu.global", "ld.relaxed.cta.global",
                            "ld.relaxed.sys.global", "ld.acquire.gpu.global", "ld.weak.global",
                            "ld.acquire.cta.global", "ld.acquire.sys.global"}) {
    forms.push_back(load(std::string(order) + ".u32", global, ".global", "u32", 1, false));
    forms.push_back(load(std::string(order) + ".v2.b32", global, ".global", "b32", 2, false));
  }
  forms.push_back(load("ld.mmio.relaxed.sys.global.u32", global, ".global", "u32", 1, false));
  for (const char* modifier : {".wb", ".cg", ".cs", ".wt", ".L1::evict_last", ".L1::no_allocate"}) {
    forms.push_back(
        store(std::string("st.global") + modifier + ".u32", global, ".global", "u32", 1));
    forms.push_back(
        store(std::string("st.global") + modifier + ".v4.f32", global, ".global", "f32", 4));
  }
  for (const char* order : {"st.volatile.global", "st.relaxed.gpu.global", "st.relaxed.sys.global",
                            "st.release.gpu.global", "st.weak.global", "st.relaxed.cta.global",
                            "st.release.cta.global", "st.release.sys.global"}) {
    forms.push_back(store(std::string(order) + ".u32", global, ".global", "u32", 1));
    forms.push_back(store(std::string(order) + ".v2.u32", global, ".global", "u32", 2));
  }
  forms.push_back(load("ld.volatile.shared.u32", kShared, ".shared", "u32", 1, false));
  forms.push_back(load("ld.relaxed.cta.shared.u32", kShared, ".shared", "u32", 1, false));
  forms.push_back(store("st.volatile.shared.u32", kShared, ".shared", "u32", 1));
  forms.push_back(load("ld.volatile.u32", kPlaces[3].setup, "", "u32", 1, false));
  forms.push_back(store("st.volatile.v2.f32", kPlaces[3].setup, "", "f32", 2));
  forms.push_back(load("ld.shared::cta.u32", kShared, ".shared", "u32", 1, false));
}

/// The non-coherent path reads what the kernel does not write: the row of sources.
void read_only(Forms& forms) {
  for (const char* type : kTypes) {
    for (const int count : {1, 2, 4}) {
      const int bits = type_bits(type), bytes = bits / 8;
      if (count * bits > 128) continue;
      for (const char* cache : {".nc", ".nc.L1::no_allocate", ".nc.L1::no_allocate.L2::128B"}) {
        if (std::string_view(cache) != ".nc" && bits != 32) continue;
        const Operand target = bits == 64 ? "b64" : bits == 32 ? "b32" : "b16";
        forms.push_back({.text = "ld.global" + std::string(cache) + vector_text(count) + "." +
                                 type + " " + register_list(0, size_t(count)) + ", [%a];",
                         .to = std::vector<Operand>(size_t(count), target),
                         .from = {"b64", "b64"},
                         .define =
                             [=](const uint64_t* s, Outcome* d) {
                               const Integer source(type), reg(target);
                               for (int i = 0; i < count; ++i) {
                                 d[i].want = reg.wrap(source.value(bytes_of(s, i * bytes, bytes)));
                               }
                             },
                         .section = "9.7.9.9",
                         .pairs_max = 1500});
      }
    }
  }
}

/// A table of 64 bytes, byte i holding 3i+1, in constant and in global memory.
void variables(Forms& forms) {
  std::string values;
  for (int i = 0; i < 64; ++i) values += (i ? ", " : "") + std::to_string(3 * i + 1);
  for (const char* space : {"const", "global"}) {
    const std::string declaration =
        std::string(".") + space + " .align 16 .b8 table#[64] = {" + values + "};";
    for (const char* type : {"u8", "s8", "u16", "s16", "u32", "f32", "u64"}) {
      const int bits = type_bits(type), bytes = bits / 8;
      const Operand target = bits == 64 ? "b64" : "b32";
      const auto define = [=](const uint64_t* s, Outcome* d) {
        uint64_t value = 0;
        const uint64_t at = (s[0] & uint64_t(64 / bytes - 1)) * uint64_t(bytes);
        for (int i = 0; i < bytes; ++i) value |= ((3 * (at + uint64_t(i)) + 1) & 0xff) << (8 * i);
        d->want = Integer(target).wrap(Integer(type).value(value));
      };
      const std::string index = "{ .reg .b64 p, q; .reg .b32 i; and.b32 i, $1, " +
                                std::to_string(64 / bytes - 1) + "; mul.wide.u32 p, i, " +
                                std::to_string(bytes) + "; mov.u64 q, table#; add.s64 p, p, q; ";
      forms.push_back({.text = index + "ld." + space + "." + type + " $0, [p]; }",
                       .to = {target},
                       .from = {"u32"},
                       .define = define,
                       .section = "9.7.9.8",
                       .pairs_max = 500,
                       .declarations = declaration});
      forms.push_back({.text = index + "cvta." + space + ".u64 p, p; ld." + type + " $0, [p]; }",
                       .to = {target},
                       .from = {"u32"},
                       .define = define,
                       .section = "9.7.9.19",
                       .pairs_max = 500,
                       .declarations = declaration});
    }
    forms.push_back({.text = std::string("ld.") + space + ".v2.u16 {$0, $1}, [table#+12];",
                     .to = {"u16", "u16"},
                     .from = {"u32"},
                     .define =
                         [](const uint64_t*, Outcome* d) {
                           d[0].want = 37 | 40 << 8;
                           d[1].want = 43 | 46 << 8;
                         },
                     .section = "9.7.9.8",
                     .pairs_max = 64,
                     .declarations = declaration});
  }
  forms.push_back({.text = "ld.global.u64 $0, [pointer#]; ld.global.u32 $1, [pointer#+8];",
                   .to = {"u64", "u32"},
                   .from = {"u32"},
                   .define =
                       [](const uint64_t*, Outcome* d) {
                         d[0].accept = [](uint64_t got) { return got != 0 && got % 16 == 4; };
                         d[1].want = 9;
                       },
                   .section = "5.4.4",
                   .pairs_max = 64,
                   .declarations = ".global .align 16 .b32 base#[4]; .global .align 8 .u64 "
                                   "pointer#[2] = {generic(base#)+4, 9};"});
}

/// cvta to and from each space; isspacep of each kind of generic address.
void generic_addresses(Forms& forms) {
  struct Row {
    const char *space, *setup;
  };
  for (const Row& row :
       {Row{"global", kPlaces[0].setup}, Row{"shared", kShared}, Row{"local", kLocal}}) {
    const std::string space = row.space;
    forms.push_back({.text = "{ " + std::string(row.setup) + " .reg .b64 g, b; cvta." + space +
                             ".u64 g, p; cvta.to." + space + ".u64 b, g; st." + space +
                             ".b32 [p], $1; ld." + space + ".b32 $0, [b]; }",
                     .to = {"b32"},
                     .from = {"b32"},
                     .define = [](const uint64_t* s, Outcome* d) { d->want = s[0]; },
                     .section = "9.7.9.19",
                     .pairs_max = 500});
    for (const char* asked : {"global", "shared", "local", "const"}) {
      const bool same = space == asked;
      forms.push_back({.text = "{ " + std::string(row.setup) + " cvta." + space +
                               ".u64 p, p; isspacep." + asked + " $0, p; }",
                       .to = {"pred"},
                       .from = {"u32"},
                       .define = [=](const uint64_t*, Outcome* d) { d->want = same; },
                       .section = "9.7.9.18",
                       .pairs_max = 64});
    }
  }
}

/// No value changes: prefetch, fences, discard hints.
void hints(Forms& forms) {
  struct Hint {
    const char* text;
    uint32_t sm = 80;
  };
  for (const Hint& hint :
       {Hint{"prefetch.global.L1 [%a];"}, Hint{"prefetch.global.L2 [%a];"},
        Hint{"prefetch.global.L2::evict_last [%a];"}, Hint{"prefetchu.L1 [%a];"},
        Hint{"membar.gl;"}, Hint{"membar.cta;"}, Hint{"membar.sys;"}, Hint{"fence.acq_rel.gpu;"},
        Hint{"fence.sc.cta;"}, Hint{"fence.sc.sys;"}, Hint{"fence.acq_rel.sys;"},
        Hint{"fence.acq_rel.cta;"}, Hint{"fence.proxy.alias;"}, Hint{"fence.acq_rel.cluster;", 90},
        Hint{"fence.acquire.gpu;", 90}, Hint{"fence.release.cta;", 90}, Hint{"pmevent 1;"},
        Hint{"nanosleep.u32 20;"}}) {
    forms.push_back({.text = std::string(hint.text) + " mov.b32 $0, $1;",
                     .to = {"b32"},
                     .from = {"b32"},
                     .define = [](const uint64_t* s, Outcome* d) { d->want = s[0]; },
                     .section = "9.7.9.15",
                     .sm = hint.sm,
                     .pairs_max = 64});
  }
  forms.push_back({.text = "{ .reg .b64 c; createpolicy.range.global.L2::evict_last."
                           "L2::evict_first.b64 c, [%o], 64, 128; "
                           "st.global.L2::cache_hint.b32 [%o], $1, c; ld.global.b32 $0, [%o]; }",
                   .to = {"b32"},
                   .from = {"b32"},
                   .define = [](const uint64_t* s, Outcome* d) { d->want = s[0]; },
                   .section = "9.7.9.17",
                   .pairs_max = 64});
  forms.push_back({.text = "ldu.global.v2.b32 {$0, $1}, [%a];",
                   .to = {"b32", "b32"},
                   .from = {"b64"},
                   .define =
                       [](const uint64_t* s, Outcome* d) {
                         d[0].want = uint32_t(s[0]);
                         d[1].want = s[0] >> 32;
                       },
                   .section = "9.7.9.10",
                   .pairs_max = 500});
  forms.push_back({.text = "{ .reg .b64 c; createpolicy.fractional.L2::evict_last.b64 c, 1.0; "
                           "ld.global.L2::cache_hint.b32 $0, [%a], c; }",
                   .to = {"b32"},
                   .from = {"b32"},
                   .define = [](const uint64_t* s, Outcome* d) { d->want = s[0]; },
                   .section = "9.7.9.17",
                   .pairs_max = 64});
}

}  // namespace

std::vector<Form> memory_forms() {
  Forms forms;
  spaces(forms);
  modifiers(forms);
  read_only(forms);
  variables(forms);
  generic_addresses(forms);
  hints(forms);
  return forms;
}

}  // namespace kv::simt::semantics
