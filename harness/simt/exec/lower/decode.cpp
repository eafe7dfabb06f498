#include "harness/simt/exec/lower/decode.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "harness/simt/check/shared_race.h"
#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/lower/allocate.h"
#include "harness/simt/exec/lower/coalesce.h"
#include "harness/simt/exec/lower/flow.h"
#include "harness/simt/exec/lower/hoist.h"
#include "harness/simt/exec/lower/probe_maker.h"
#include "harness/simt/exec/lower/watch.h"
#include "harness/simt/exec/taint.h"

namespace kv::simt {
namespace {

std::string demangle(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

class Emitter {
 public:
  Emitter(const Lowered& lowered, const RegisterFile& file, const ProbePlan& probes,
          Program* program)
      : lowered_(lowered),
        file_(file),
        watch_(watch_registers(lowered, file.live_at_entry)),
        first_mask_(file.predicates + 1),
        out_(*program),
        probes_(lowered, file, probes, program) {}

  void run() {
    const Flow flow = flow_of(lowered_);
    position_.assign(lowered_.steps.size(), 0);
    for (size_t b = 0; b < flow.blocks(); ++b) {
      if (flow.begin[b] == lowered_.prologue) {
        out_.entry = uint32_t(out_.code.size());
        append(probes_.entry());
      }
      block(flow.begin[b], flow.begin[b + 1]);
    }
    for (auto [ins, step] : fixups_) out_.code[ins].target = position_[step];
  }

 private:
  uint32_t add_meta(const Step& s, bool guard_only) {
    Meta m;
    m.source = s.source;
    m.taint = s.taint;
    m.source_bits = s.source_bits;
    if (!guard_only) {
      m.destinations = uint8_t(s.destinations.size());
      m.sources = uint8_t(s.sources.size());
      size_t k = 0;
      for (uint32_t r : s.destinations) m.classes[k++] = lowered_.registers[r].cls;
      for (uint32_t r : s.sources) m.classes[k++] = lowered_.registers[r].cls;
    }
    out_.meta.push_back(m);
    return uint32_t(out_.meta.size() - 1);
  }

  Ins encode(const Step& s, uint32_t meta) const {
    Ins ins = s.proto;
    ins.run = s.run;
    ins.meta = meta;
    size_t k = 0;
    for (uint32_t r : s.destinations) ins.r[k++] = file_.place[r];
    for (uint32_t r : s.sources) ins.r[k++] = file_.place[r];
    return ins;
  }

  /// Looks at, or marks, the registers of a step that are watched.
  void watch(Handler run, const std::vector<std::vector<uint16_t>>& lists, uint32_t step,
             uint16_t guard) {
    if (lists.empty()) return;
    const std::vector<uint16_t>& list = lists[step];
    for (size_t first = 0; first < list.size(); first += Ins::kOperands) {
      Ins ins = probes_.probe(run, lowered_.steps[step], 0);
      ins.guard = guard;
      ins.count = uint8_t(std::min<size_t>(Ins::kOperands, list.size() - first));
      for (size_t k = 0; k < ins.count; ++k) ins.r[k] = uint16_t(first_mask_ + list[first + k]);
      out_.code.push_back(ins);
    }
  }

  void append(const std::vector<Ins>& list) {
    out_.code.insert(out_.code.end(), list.begin(), list.end());
  }

  void block(uint32_t begin, uint32_t end) {
    Cost cost;
    bool ended = false;
    for (uint32_t k = begin; k < end; ++k) {
      const Step& s = lowered_.steps[k];
      position_[k] = uint32_t(out_.code.size());
      watch(check_written, watch_.guard_checks, k, kNoGuard);
      watch(check_written, watch_.checks, k, guard_of(s, file_));
      if (s.control) watch(mark_written, watch_.marks, k, guard_of(s, file_));
      if (s.elsewhere) {
        append(probes_.before(s));
        if (s.counts) ++cost.all, ++cost.unguarded;
        continue;
      }
      const uint32_t meta = add_meta(s, false);
      Ins ins = encode(s, meta);
      if (s.synchronises) ins.target = cost.all;
      if (s.counts) ++cost.all;
      if (s.control) {
        if (s.counts) ++cost.unguarded;
        append(probes_.before(s));
        append(probes_.leaving(s));
        ins.guard = guard_of(s, file_);
        ins.imm = cost.pack();
        if (s.target >= 0) fixups_.emplace_back(out_.code.size(), size_t(s.target));
        out_.code.push_back(ins);
        ended = true;
        continue;
      }
      if (s.guard < 0) {
        if (s.counts) ++cost.unguarded;
        append(probes_.before(s));
        out_.code.push_back(ins);
        append(probes_.after(s, ins));
        watch(mark_written, watch_.marks, k, kNoGuard);
        continue;
      }
      const std::vector<Ins> ahead = probes_.before(s), behind = probes_.after(s, ins);
      Ins before;
      before.run = guard_begin;
      before.guard = guard_of(s, file_);
      before.meta = meta;
      before.extra = uint16_t(1 + ahead.size());
      before.mode = s.counts;
      Ins after;
      after.run = guard_end;
      after.meta = meta;
      const size_t at = out_.code.size();
      out_.code.push_back(before);
      append(ahead);
      out_.code.push_back(ins);
      append(behind);
      watch(mark_written, watch_.marks, k, kNoGuard);
      out_.code.push_back(after);
      out_.code[at].target = uint32_t(out_.code.size() - at);
    }
    if (ended) return;
    Ins last;
    last.run = block_end;
    Step nothing;
    nothing.taint = Taint::kNone;
    nothing.source = lowered_.steps[end - 1].source;
    last.meta = add_meta(nothing, true);
    last.imm = cost.pack();
    out_.code.push_back(last);
  }

  const Lowered& lowered_;
  const RegisterFile& file_;
  const Watch watch_;
  const uint32_t first_mask_;  // of the watched registers, a predicate
  Program& out_;
  ProbeMaker probes_;
  std::vector<uint32_t> position_;
  std::vector<std::pair<size_t, size_t>> fixups_;
};

struct Prepared {
  Lowered lowered;
  RegisterFile file;
};

/// Steps and their registers, fewer steps unless every instruction has to be seen to make its
/// value. The number of registers is that of the kernel as written.
Result<Prepared> prepare(const LowerInput& input, const ProbePlan& probes,
                         const ptx::Instruction** where) {
  Prepared p;
  KV_ASSIGN_OR_RETURN(p.lowered, lower(input, where));
  KV_ASSIGN_OR_RETURN(p.file, allocate_registers(p.lowered));
  if (probes.bits & probe_bits::kDigest) return p;
  hoist_invariants(p.lowered, p.file.live_at_entry, input.kernel->parameter_bytes);
  coalesce_moves(p.lowered, p.file.live_at_entry);
  Result<RegisterFile> file = allocate_registers(p.lowered);
  if (file.ok()) {
    const uint32_t registers = p.file.registers;
    p.file = std::move(file).value();
    p.file.registers = registers;
  } else {  // values that are kept take more room
    KV_ASSIGN_OR_RETURN(p.lowered, lower(input, where));
  }
  return p;
}

uint32_t shift_of(uint32_t bytes) { return bytes >= 4 ? 2 : bytes == 2 ? 1 : 0; }

}  // namespace

Result<std::unique_ptr<Program>> decode(const LowerInput& input, const ProbePlan& probes,
                                        const ptx::Instruction** where) {
  *where = nullptr;
  KV_ASSIGN_OR_RETURN(const Prepared prepared, prepare(input, probes, where));
  const Lowered& lowered = prepared.lowered;
  const RegisterFile& file = prepared.file;
  auto program = std::make_unique<Program>();
  Program& p = *program;
  p.name = input.kernel->name;
  p.demangled = demangle(p.name);
  Emitter(lowered, file, probes, &p).run();
  for (size_t r = 0; r < lowered.registers.size(); ++r) {
    const VirtualRegister& v = lowered.registers[r];
    if (v.constant) p.constants.push_back({file.place[r], v.cls == '4', v.value});
    if (v.special >= 0) p.specials.push_back({file.place[r], Special(v.special), v.cls == '4'});
  }
  for (uint32_t r : file.live_at_entry) {
    p.watched.push_back({file.place[r], lowered.registers[r].cls});
  }
  p.slots = file.slots + 1;
  p.first_mask = file.predicates + 1;
  p.predicates = p.first_mask + uint32_t(p.watched.size());
  p.hints = 256;
  p.static_shared_bytes = lowered.static_shared_bytes;
  p.dynamic_shared_offset = lowered.dynamic_shared_offset;
  p.local_bytes = (lowered.local_bytes + 15) / 16 * 16;
  p.frame_bytes = lowered.frame_bytes;
  p.parameter_bytes = uint32_t(input.kernel->parameter_bytes);
  p.registers = file.registers;
  p.shared_granule_shift = shift_of(lowered.narrowest_shared);
  p.global_granule_shift = shift_of(lowered.narrowest_global);
  p.shared_chunks = lowered.widest_shared >= 1u << SharedChunk::kShift;
  p.partial_sync = lowered.partial_sync;
  return program;
}

}  // namespace kv::simt
