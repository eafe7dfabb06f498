// mov between registers, packing and unpacking. PTX ISA 9.0 section 9.7.9.
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {

std::vector<Form> move_forms() {
  std::vector<Form> forms;
  const auto copy = [](const uint64_t* s, Outcome* d) { d->want = s[0]; };
  for (const char* type :
       {"pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"}) {
    forms.push_back({.text = std::string("mov.") + type,
                     .to = {type},
                     .from = {type},
                     .define = copy,
                     .section = "9.7.9.3"});
  }
  const auto add = [&forms](const char* text, std::vector<Operand> to, std::vector<Operand> from,
                            std::function<void(const uint64_t*, Outcome*)> define) {
    forms.push_back({.text = text,
                     .to = std::move(to),
                     .from = std::move(from),
                     .define = std::move(define),
                     .section = "9.7.9.4"});
  };
  add("mov.b32 $0, {$1, $2};", {"b32"}, {"b16", "b16"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] | s[1] << 16; });
  add("mov.b32 {$0, $1}, $2;", {"b16", "b16"}, {"b32"}, [](const uint64_t* s, Outcome* d) {
    d[0].want = s[0] & 0xffff;
    d[1].want = s[0] >> 16;
  });
  add("mov.b64 $0, {$1, $2};", {"b64"}, {"b32", "b32"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] | s[1] << 32; });
  add("mov.b64 {$0, $1}, $2;", {"b32", "b32"}, {"b64"}, [](const uint64_t* s, Outcome* d) {
    d[0].want = uint32_t(s[0]);
    d[1].want = s[0] >> 32;
  });
  add("mov.b64 {_, $0}, $1;", {"b32"}, {"b64"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] >> 32; });
  add("mov.b64 $0, {$1, $2, $3, $4};", {"b64"}, {"b16", "b16", "b16", "b16"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] | s[1] << 16 | s[2] << 32 | s[3] << 48; });
  add("mov.b64 {$0, $1, $2, $3}, $4;", {"b16", "b16", "b16", "b16"}, {"b64"},
      [](const uint64_t* s, Outcome* d) {
        for (int i = 0; i < 4; ++i) d[i].want = s[0] >> (16 * i) & 0xffff;
      });
  // A destination that is also a source.
  add("add.u32 $0, $2, $3; sub.u32 $1, $2, $3; mov.b32 $2, $0; xor.b32 $0, $2, $1;", {"u32", "u32"},
      {"u32", "u32"}, [](const uint64_t* s, Outcome* d) {
        d[0].want = uint32_t(s[0] + s[1]) ^ uint32_t(s[0] - s[1]);
        d[1].want = uint32_t(s[0] - s[1]);
      });
  // Immediates of each kind.
  add("add.s32 $0, $1, -7;", {"s32"}, {"s32"},
      [](const uint64_t* s, Outcome* d) { d->want = uint32_t(s[0] - 7); });
  add("mov.b64 $0, -2; add.s64 $0, $0, $1;", {"s64"}, {"s64"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] - 2; });
  add("mov.f32 $0, 0fBFC00000; xor.b32 $0, $0, $1;", {"b32"}, {"b32"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] ^ 0xbfc00000; });
  add("mov.f32 $0, 1.5; xor.b32 $0, $0, $1;", {"b32"}, {"b32"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] ^ 0x3fc00000; });
  add("mov.f64 $0, 0d3FF8000000000000; xor.b64 $0, $0, $1;", {"b64"}, {"b64"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] ^ 0x3ff8000000000000; });
  add("mov.u16 $0, 0xABCD; xor.b16 $0, $0, $1;", {"b16"}, {"b16"},
      [](const uint64_t* s, Outcome* d) { d->want = s[0] ^ 0xabcd; });
  // Guards keep the old value.
  add("mov.u32 $0, $1; @$2 mov.u32 $0, 5;", {"u32"}, {"u32", "pred"},
      [](const uint64_t* s, Outcome* d) { d->want = s[1] ? 5 : s[0]; });
  add("mov.u32 $0, $1; @!$2 add.u32 $0, $0, 5;", {"u32"}, {"u32", "pred"},
      [](const uint64_t* s, Outcome* d) { d->want = uint32_t(s[1] ? s[0] : s[0] + 5); });
  return forms;
}

}  // namespace kv::simt::semantics
