#include "harness/simt/bench/instructions.h"

namespace kv::simt::bench {
namespace {

void replace_all(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

// %r10 lane, %r11 lane * 4, %r12 lane * 16, %r13 row of ldmatrix, all in shared memory; %rd2 and
// %rd3 this block's part of the buffer, lane * 4 and lane * 16 further.
constexpr char kHead[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 buffer) {
  .reg .b32 %r<64>; .reg .f32 %f<64>; .reg .b64 %rd<64>; .reg .b64 %x<64>; .reg .pred %p<8>;
  .shared .align 16 .b8 memory[8192];
  ld.param.u64 %rd1, [buffer];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 16384;
  add.s64 %rd1, %rd1, %rd2;
  mov.u32 %r10, %tid.x;
  mov.u32 %r14, memory;
  shl.b32 %r11, %r10, 2;
  shl.b32 %r12, %r10, 4;
  cvt.u64.u32 %rd4, %r11;
  add.s64 %rd2, %rd1, %rd4;
  cvt.u64.u32 %rd5, %r12;
  add.s64 %rd3, %rd1, %rd5;
  add.s32 %r11, %r11, %r14;
  add.s32 %r12, %r12, %r14;
  mov.b32 %r2, 31;
  mov.b32 %r3, 16;
  setp.lt.u32 %p1, %r10, 20;
)";

constexpr char kTail[] = R"(
  add.s32 %r0, %r0, 1;
  setp.lt.u32 %p0, %r0, 64;
  @%p0 bra again;
  ret;
}
)";

}  // namespace

std::vector<InstructionClass> instruction_classes() {
  return {
      {"fma.rn.f32", "fma.rn.f32 %F, %G, %H, %F;"},
      {"fma.rn.f32, 20 of 32 lanes", "@%p1 fma.rn.f32 %F, %G, %H, %F;"},
      {"add.s32", "add.s32 %R, %S, %T;"},
      {"mad.lo.s32", "mad.lo.s32 %R, %S, %T, %R;"},
      {"add.s64", "add.s64 %X, %Y, %X;"},
      {"setp.lt.f32", "setp.lt.f32 %p2, %F, %G;"},
      {"selp.b32", "selp.b32 %R, %S, %T, %p1;"},
      {"max.f32", "max.f32 %F, %G, %H;"},
      {"cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 %R, %F, %G;"},
      {"ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %F, %G;"},
      {"rcp.approx.ftz.f32", "rcp.approx.ftz.f32 %F, %G;"},
      {"shfl.sync.bfly.b32", "shfl.sync.bfly.b32 %R, %S, 1, 31, -1;"},
      {"ld.shared.f32", "ld.shared.f32 %F, [%r11+%O];"},
      {"st.shared.f32", "st.shared.f32 [%r11+%O], %F;"},
      {"ld.shared.v4.f32", "ld.shared.v4.f32 {%f40, %f41, %f42, %f43}, [%r12+%O];"},
      {"st.shared.v4.f32", "st.shared.v4.f32 [%r12+%O], {%F, %G, %H, %F};"},
      {"ldmatrix.x4",
       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40, %r41, %r42, %r43}, [%r12+%O];"},
      {"ldmatrix.x4.trans",
       "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r40, %r41, %r42, %r43}, [%r12+%O];"},
      {"ld.global.f32", "ld.global.f32 %F, [%rd2+%O];"},
      {"st.global.f32", "st.global.f32 [%rd2+%O], %F;"},
      {"ld.global.v4.f32", "ld.global.v4.f32 {%f40, %f41, %f42, %f43}, [%rd3+%O];"},
      {"st.global.v4.f32", "st.global.v4.f32 [%rd3+%O], {%F, %G, %H, %F};"},
      {"atom.global.add.u32", "atom.global.add.u32 %R, [%rd2+%O], 1;"},
      {"cp.async.cg 16, commit, wait",
       "cp.async.cg.shared.global [%r12+%O], [%rd3+%O], 16, %r3;\n"
       "cp.async.commit_group;\ncp.async.wait_group 0;"},
      {"mma.m16n8k16.f32.f16.f16.f32",
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f40, %f41, %f42, %f43}, "
       "{%r20, %r21, %r22, %r23}, {%r24, %r25}, {%f40, %f41, %f42, %f43};"},
      {"mma.m16n8k16.f32.bf16.bf16.f32",
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f40, %f41, %f42, %f43}, "
       "{%r20, %r21, %r22, %r23}, {%r24, %r25}, {%f40, %f41, %f42, %f43};"},
      {"bar.sync", "bar.sync 0;"},
      {"setp and a uniform branch", "setp.ne.s32 %p3, %r0, -1;\n@%p3 bra L%N;\nL%N:", 2},
  };
}

std::string module_of(const InstructionClass& what) {
  std::string text = kHead;
  for (int k = 20; k < 64; ++k) {
    const std::string n = std::to_string(k);
    text += "mov.b32 %r" + n + ", " + std::to_string(0x3c003c00 + 0x10001 * k) + ";\n";
    text += "mov.b32 %f" + n + ", 0f3f80" + std::to_string(1000 + k) + ";\n";
    text += "mov.b64 %x" + n + ", " + n + ";\n";
  }
  for (int k = 0; k < 16; ++k) {
    const std::string offset = std::to_string(512 * k);
    text += "st.shared.v4.f32 [%r12+" + offset + "], {%f20, %f21, %f22, %f23};\n";
  }
  text += "bar.sync 0;\nmov.b32 %r0, 0;\nagain:\n";
  for (uint32_t k = 0; k < kBodies; ++k) {
    std::string body = what.body;
    const auto reg = [&](const char* cls, uint32_t step) {
      return std::string("%") + cls + std::to_string(20 + (k + step) % 20);
    };
    replace_all(&body, "%R", reg("r", 7));
    replace_all(&body, "%S", reg("r", 0));
    replace_all(&body, "%T", reg("r", 1));
    replace_all(&body, "%F", reg("f", 7));
    replace_all(&body, "%G", reg("f", 0));
    replace_all(&body, "%H", reg("f", 1));
    replace_all(&body, "%X", reg("x", 7));
    replace_all(&body, "%Y", reg("x", 0));
    replace_all(&body, "%N", std::to_string(k));
    replace_all(&body, "%O", std::to_string(k % 8 * 512));
    text += body + "\n";
  }
  return text + kTail;
}

}  // namespace kv::simt::bench
