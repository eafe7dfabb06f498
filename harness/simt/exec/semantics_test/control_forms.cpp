// Branches, calls, returns, barriers, parameters. PTX ISA 9.0 sections 7.1, 9.7.12 and 9.7.13.1.
#include <string>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;
using Define = std::function<void(const uint64_t*, Outcome*)>;

Form scalar(const char* text, std::vector<Operand> to, std::vector<Operand> from,
            const char* section, Define define, const char* declarations = "") {
  return {.text = text,
          .to = std::move(to),
          .from = std::move(from),
          .define = std::move(define),
          .section = section,
          .pairs_max = 2000,
          .declarations = declarations};
}

void branches(Forms& forms) {
  forms.push_back(scalar("{ @$3 bra A; mov.b32 $0, $1; bra.uni B; A: mov.b32 $0, $2; B: }", {"b32"},
                         {"b32", "b32", "pred"}, "9.7.12.3",
                         [](const uint64_t* s, Outcome* d) { d->want = s[2] ? s[1] : s[0]; }));
  // A loop whose trip count differs in each lane.
  forms.push_back(
      scalar("{ .reg .b32 n; .reg .pred q; and.b32 n, $1, 31; mov.b32 $0, 1; TOP: setp.eq.u32 q, "
             "n, 0; @q bra END; "
             "mad.lo.u32 $0, $0, 3, n; sub.u32 n, n, 1; bra TOP; END: }",
             {"b32"}, {"b32"}, "9.7.12.3", [](const uint64_t* s, Outcome* d) {
               uint32_t value = 1;
               for (uint32_t n = uint32_t(s[0]) & 31; n != 0; --n) value = value * 3 + n;
               d->want = value;
             }));
  // Nested, with lanes that leave the loop early.
  forms.push_back(scalar(
      "{ .reg .b32 i, j, a; .reg .pred q; mov.b32 $0, 0; mov.b32 i, 0; OUTER: and.b32 a, $1, 7; "
      "mov.b32 j, 0; "
      "INNER: setp.ge.u32 q, j, a; @q bra NEXT; add.u32 $0, $0, i; add.u32 j, j, 1; setp.gt.u32 q, "
      "$0, 40; "
      "@q bra DONE; bra INNER; NEXT: add.u32 i, i, 1; setp.lt.u32 q, i, 6; @q bra OUTER; DONE: }",
      {"b32"}, {"b32"}, "9.7.12.3", [](const uint64_t* s, Outcome* d) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 6 && sum <= 40; ++i) {
          for (uint32_t j = 0; j < (s[0] & 7) && sum <= 40; ++j) sum += i;
        }
        d->want = sum;
      }));
  forms.push_back(
      scalar("{ .reg .b32 i; and.b32 i, $1, 3; t: .branchtargets A, B, C, A; brx.idx i, t; A: "
             "mov.b32 $0, 10; bra E; "
             "B: mov.b32 $0, 11; bra E; C: mov.b32 $0, 12; E: }",
             {"b32"}, {"b32"}, "9.7.12.4", [](const uint64_t* s, Outcome* d) {
               const uint32_t index = uint32_t(s[0]) & 3;
               d->want = index == 3 ? 10 : 10 + index;
             }));
  // Results are stored before some lanes exit and the rest go on.
  forms.push_back(scalar("st.global.b64 [%o], 7; @$2 exit; mov.b64 $0, $1;", {"b64"},
                         {"b64", "pred"}, "9.7.12.7",
                         [](const uint64_t* s, Outcome* d) { d->want = s[1] ? 7 : s[0]; }));
  forms.push_back(scalar("st.global.b64 [%o], 7; @!$2 ret; mov.b64 $0, $1;", {"b64"},
                         {"b64", "pred"}, "9.7.12.6",
                         [](const uint64_t* s, Outcome* d) { d->want = s[1] ? s[0] : 7; }));
}

void calls(Forms& forms) {
  const char* const add3 =
      ".func (.param .b32 r) add3#(.param .b32 a, .param .b64 b) { .reg .b32 %x, %y; .reg .b64 %z; "
      "ld.param.b32 %x, [a]; "
      "ld.param.b64 %z, [b]; cvt.u32.u64 %y, %z; add.u32 %x, %x, %y; add.u32 %x, %x, 3; "
      "st.param.b32 [r], %x; ret; }";
  forms.push_back(scalar(
      "{ .param .b32 p0; .param .b64 p1; .param .b32 q; st.param.b32 [p0], $1; st.param.b64 [p1], "
      "$2; "
      "call.uni (q), add3#, (p0, p1); ld.param.b32 $0, [q]; }",
      {"b32"}, {"b32", "b64"}, "9.7.12.5",
      [](const uint64_t* s, Outcome* d) { d->want = uint32_t(s[0] + s[1] + 3); }, add3));
  // A struct by value, as nvcc passes it, and a divergent return.
  const char* const sum =
      ".func (.param .b32 r) sum#(.param .align 8 .b8 s[16]) { .reg .b16 %h0, %h1; .reg .b32 %x, "
      "%y; .reg .b64 %z; .reg .pred %p; "
      "ld.param.b32 %x, [s]; ld.param.v2.b16 {%h0, %h1}, [s+4]; ld.param.b64 %z, [s+8]; "
      "setp.eq.u32 %p, %x, 0; "
      "st.param.b32 [r], 77; @%p ret; cvt.u32.u16 %y, %h0; add.u32 %x, %x, %y; cvt.u32.u16 %y, "
      "%h1; add.u32 %x, %x, %y; "
      "cvt.u32.u64 %y, %z; add.u32 %x, %x, %y; st.param.b32 [r], %x; ret; }";
  forms.push_back(scalar(
      "{ .param .align 8 .b8 p0[16]; .param .b32 q; .reg .b16 l, h; st.param.b32 [p0], $1; mov.b32 "
      "{l, h}, $2; "
      "st.param.v2.b16 [p0+4], {l, h}; st.param.b64 [p0+8], $3; call.uni (q), sum#, (p0); "
      "ld.param.b32 $0, [q]; }",
      {"b32"}, {"b32", "b32", "b64"}, "7.1",
      [](const uint64_t* s, Outcome* d) {
        d->want = s[0] == 0 ? 77 : uint32_t(s[0] + (s[1] & 0xffff) + (s[1] >> 16) + s[2]);
      },
      sum));
  // A call that only some lanes make, twice removed.
  const char* const twice =
      ".func (.param .b32 r) inner#(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; "
      "mul.lo.u32 %x, %x, 5; "
      "st.param.b32 [r], %x; ret; }\n"
      ".func (.param .b32 r) outer#(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; { .param "
      ".b32 p0; .param .b32 q; "
      "st.param.b32 [p0], %x; call.uni (q), inner#, (p0); ld.param.b32 %x, [q]; } add.u32 %x, %x, "
      "1; st.param.b32 [r], %x; ret; }";
  forms.push_back(scalar(
      "{ .param .b32 p0; .param .b32 q; mov.b32 $0, $1; @!$2 bra OVER; st.param.b32 [p0], $1; "
      "call (q), outer#, (p0); ld.param.b32 $0, [q]; OVER: }",
      {"b32"}, {"b32", "pred"}, "9.7.12.5",
      [](const uint64_t* s, Outcome* d) { d->want = uint32_t(s[1] ? s[0] * 5 + 1 : s[0]); },
      twice));
}

/// Values cross from one thread to another through shared memory.
void barriers(Forms& forms) {
  for (const char* barrier : {"bar.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;",
                              "bar.sync 3, 128;", "barrier.cta.sync 1;", "bar.sync 15;"}) {
    Form form;
    form.text =
        "{ .shared .align 4 .b32 cell[128]; .reg .b32 t, p, q; mov.u32 t, %tid.x; shl.b32 q, t, 2; "
        "mov.u32 p, cell; "
        "add.u32 q, q, p; st.shared.b32 [q], $1; " +
        std::string(barrier) +
        " xor.b32 q, t, 1; shl.b32 q, q, 2; add.u32 q, q, p; ld.shared.b32 $0, [q]; }";
    form.to = {"b32"};
    form.from = {"b32"};
    form.section = "9.7.13.1";
    form.pairs_max = 1000;
    form.define_warp = [](uint64_t, const uint64_t* s, Outcome* d) {
      for (int lane = 0; lane < 32; ++lane) d[lane].want = s[lane ^ 1];
    };
    forms.push_back(form);
  }
  for (const char* mode : {"popc.u32", "and.pred", "or.pred"}) {
    Form form;
    const bool counts = mode[0] == 'p';
    form.text = std::string("bar.red.") + mode + " $0, 0, $1;";
    form.to = {counts ? "u32" : "pred"};
    form.from = {"pred"};
    form.section = "9.7.13.1";
    form.pairs_max = 1000;
    form.threads = 32;
    form.define_warp = [=](uint64_t, const uint64_t* s, Outcome* d) {
      uint64_t count = 0;
      for (int lane = 0; lane < 32; ++lane) count += s[lane] != 0;
      const uint64_t want = counts ? count : mode[0] == 'a' ? count == 32 : count != 0;
      for (int lane = 0; lane < 32; ++lane) d[lane].want = want;
    };
    forms.push_back(form);
  }
  for (const char* text : {"bar.warp.sync -1;", "bar.warp.sync 0xffffffff;", "griddepcontrol.wait;",
                           "griddepcontrol.launch_dependents;"}) {
    Form form = scalar("mov.b32 $0, $1;", {"b32"}, {"b32"}, "9.7.13.2",
                       [](const uint64_t* s, Outcome* d) { d->want = s[0]; });
    form.text = std::string(text) + " mov.b32 $0, $1;";
    form.sm = text[0] == 'g' ? 90u : 80u;
    form.pairs_max = 64;
    forms.push_back(form);
  }
}

/// Kernel parameters: by name, through the address of their space, and by generic address.
void parameters(Forms& forms) {
  struct Access {
    const char *setup, *opcode, *address;
    uint32_t sm;
  };
  constexpr Access kAccesses[] = {
      {"", "ld.param", "extra+", 80},
      {".reg .b64 p; mov.b64 p, extra;", "ld.param", "p+", 80},
      {".reg .b64 p; mov.b64 p, extra; cvta.param.u64 p, p;", "ld", "p+", 80},
  };
  for (const Access& access : kAccesses) {
    for (const char* type : {"u8", "s8", "u16", "s16", "b32", "u32", "f32", "b64", "u64", "f64"}) {
      const int bytes = std::stoi(type + 1) / 8;
      for (int count = 1; count <= 4; count *= 2) {
        if (count * bytes > 16) continue;
        const Operand to = bytes == 8 ? "b64" : bytes == 4 ? "b32" : "b16";
        const int offset = 16 - count * bytes;
        const std::string vector = count == 1 ? "." : ".v" + std::to_string(count) + ".";
        const auto define = [=](const uint64_t*, Outcome* d) {
          for (int i = 0; i < count; ++i) {
            const int at = offset + i * bytes;
            const uint64_t value = kExtra[at / 8] >> (at % 8 * 8);
            d[i].want = Integer(to).wrap(
                Integer(type[0] == 's' ? type : std::string("u") + (type + 1)).value(value));
          }
        };
        Form form = scalar("", std::vector<Operand>(size_t(count), to), {"b32"}, "7.1", define);
        form.text = std::string("{ ") + access.setup + " " + access.opcode + vector + type + " " +
                    register_list(0, size_t(count)) + ", [" + access.address +
                    std::to_string(offset) + "]; }";
        form.pairs_max = 64;
        forms.push_back(std::move(form));
      }
    }
  }
}

}  // namespace

std::vector<Form> control_forms() {
  Forms forms;
  branches(forms);
  calls(forms);
  barriers(forms);
  parameters(forms);
  return forms;
}

}  // namespace kv::simt::semantics
