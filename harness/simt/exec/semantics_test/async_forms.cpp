// cp.async of 4, 8 and 16 bytes, with zero fill, groups and hints. PTX ISA 9.0 section 9.7.9.25.
#include <algorithm>

#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

constexpr const char* kCell =
    ".shared .align 16 .b8 cell[2048]; .reg .b32 t, p; mov.u32 t, %tid.x; mov.u32 p, cell; "
    "mad.lo.u32 p, t, 16, p; "
    ".reg .b64 z; mov.b64 z, -1; st.shared.b64 [p], z; st.shared.b64 [p+8], z; ";
constexpr const char* kWait = " cp.async.commit_group; cp.async.wait_group 0; ";
constexpr const char* kRead = " ld.shared.b64 $0, [p]; ld.shared.b64 $1, [p+8]; }";

/// `taken` of `bytes` bytes of the source, zeros up to `bytes`, ones beyond.
void copied(const uint64_t* s, uint32_t bytes, uint32_t taken, Outcome* d) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint64_t source = s[i / 8] >> (8 * (i % 8)) & 0xff;
    const uint64_t byte = i < taken ? source : i < bytes ? 0 : 0xff;
    d[i / 8].want |= byte << (8 * (i % 8));
  }
}

Form copy(const std::string& instruction, std::vector<Operand> from, uint32_t bytes,
          const char* wait, std::function<uint32_t(const uint64_t*)> taken) {
  return {.text = std::string("{ ") + kCell + instruction + wait + kRead,
          .to = {"b64", "b64"},
          .from = std::move(from),
          .define = [=](const uint64_t* s, Outcome* d) { copied(s, bytes, taken(s), d); },
          .section = "9.7.9.25.4.1",
          .pairs_max = 1000};
}

void sizes(Forms& forms) {
  struct Row {
    const char* opcode;
    uint32_t bytes;
  };
  for (const Row& row : {Row{"ca", 4}, Row{"ca", 8}, Row{"ca", 16}, Row{"cg", 16}}) {
    for (const char* hint : {"", ".L2::64B", ".L2::128B", ".L2::256B"}) {
      const std::string start = std::string("cp.async.") + row.opcode + ".shared.global" + hint +
                                " [p], [%a], " + std::to_string(row.bytes);
      const uint32_t bytes = row.bytes;
      forms.push_back(
          copy(start + ";", {"b64", "b64"}, bytes, kWait, [=](const uint64_t*) { return bytes; }));
      // The source size in a register, as kernels use it to fill rows beyond the end with zeros.
      const std::string size =
          "{ .reg .b32 n; and.b32 n, $4, " + std::to_string(bytes - 1) + "; " + start + ", n; }";
      forms.push_back(copy(size, {"b64", "b64", "b32"}, bytes, kWait,
                           [=](const uint64_t* s) { return uint32_t(s[2]) & (bytes - 1); }));
      forms.push_back(
          copy(start + ", 0;", {"b64", "b64"}, bytes, kWait, [](const uint64_t*) { return 0u; }));
    }
    const std::string start = std::string("cp.async.") + row.opcode + ".shared.global [p], [%a], " +
                              std::to_string(row.bytes);
    const uint32_t bytes = row.bytes;
    forms.push_back(copy(start + ";", {"b64", "b64"}, bytes, " cp.async.wait_all; ",
                         [=](const uint64_t*) { return bytes; }));
    forms.push_back(copy(start + ", $4;", {"b64", "b64", "pred"}, bytes, kWait,
                         [=](const uint64_t* s) { return s[2] ? 0 : bytes; }));  // ignore-src
  }
}

/// A guard that is false copies nothing: the ones stay.
void guarded(Forms& forms) {
  for (const bool negated : {false, true}) {
    Form form =
        copy(std::string(negated ? "@!$4" : "@$4") + " cp.async.cg.shared.global [p], [%a], 16;",
             {"b64", "b64", "pred"}, 16, kWait, nullptr);
    form.define = [=](const uint64_t* s, Outcome* d) {
      if ((s[2] != 0) != negated) return copied(s, 16, 16, d);
      d[0].want = d[1].want = ~uint64_t{0};
    };
    forms.push_back(form);
  }
}

/// Two groups; each half is read after the wait that promises it.
void groups(Forms& forms) {
  const char* const text =
      "cp.async.ca.shared.global [p], [%a], 8; cp.async.commit_group; cp.async.ca.shared.global "
      "[p+8], [%a+8], 8; "
      "cp.async.commit_group; cp.async.wait_group 1; ld.shared.b64 $0, [p]; cp.async.wait_group 0; "
      "ld.shared.b64 $1, [p+8]; }";
  forms.push_back({.text = std::string("{ ") + kCell + text,
                   .to = {"b64", "b64"},
                   .from = {"b64", "b64"},
                   .define =
                       [](const uint64_t* s, Outcome* d) {
                         d[0].want = s[0];
                         d[1].want = s[1];
                       },
                   .section = "9.7.9.25.3.1",
                   .pairs_max = 1000});
}

/// Copies read by other threads after a barrier.
void exchanged(Forms& forms) {
  Form form;
  form.text =
      std::string("{ ") + kCell + "cp.async.cg.shared.global [p], [%a], 16;" + kWait +
      "bar.sync 0; .reg .b32 q; xor.b32 q, t, 31; mov.u32 p, cell; mad.lo.u32 p, q, 16, p;" + kRead;
  form.to = {"b64", "b64"};
  form.from = {"b64", "b64"};
  form.section = "9.7.9.25.3";
  form.pairs_max = 1000;
  form.define_warp = [](uint64_t, const uint64_t* s, Outcome* d) {
    for (int lane = 0; lane < 32; ++lane) {
      d[2 * lane].want = s[2 * (31 - lane)];
      d[2 * lane + 1].want = s[2 * (31 - lane) + 1];
    }
  };
  forms.push_back(form);
}

}  // namespace

std::vector<Form> async_forms() {
  Forms forms;
  sizes(forms);
  guarded(forms);
  groups(forms);
  exchanged(forms);
  return forms;
}

}  // namespace kv::simt::semantics
