#include "harness/simt/exec/lower/probe_maker.h"

#include <algorithm>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/lower/lowerer.h"

namespace kv::simt {

uint16_t guard_of(const Step& s, const RegisterFile& file) {
  if (s.guard < 0) return kNoGuard;
  return uint16_t(file.place[size_t(s.guard)] << 1 | (s.guard_negated ? 1 : 0));
}

Ins ProbeMaker::probe(Handler run, const Step& s, int64_t imm) {
  Meta m;
  m.source = s.source;
  m.taint = Taint::kNone;
  out_.meta.push_back(m);
  Ins ins;
  ins.run = run;
  ins.meta = uint32_t(out_.meta.size() - 1);
  ins.imm = imm;
  return ins;
}

std::vector<Ins> ProbeMaker::entry() {
  if (!wants(probe_bits::kEdges)) return {};
  return {probe(probe_edges, lowered_.steps[0], next_edge())};
}

std::vector<Ins> ProbeMaker::before(const Step& s) {
  std::vector<Ins> list;
  if (wants(probe_bits::kMemory)) add_memory_probes(s, &list);
  if (!counts_behind(s)) add_execution_probes(s, &list);
  return list;
}

/// Parts of a warp reach a *.sync apart and execute it together: only behind it they are one.
bool ProbeMaker::counts_behind(const Step& s) { return s.synchronises && !s.control; }

void ProbeMaker::add_execution_probes(const Step& s, std::vector<Ins>* list) {
  if (!s.counts) return;
  if (wants(probe_bits::kExecutions)) {
    list->push_back(probe(probe_executions, s, int64_t(plan_.number(s.source))));
  }
  if (wants(probe_bits::kWatched) && plan_.watched == s.source) {
    list->push_back(probe(probe_watched, s, 0));
  }
}

/// The sides of an access that cost something: of an asynchronous copy two.
void ProbeMaker::add_memory_probes(const Step& s, std::vector<Ins>* list) {
  const ptx::Instruction& source = *s.source;
  if (s.taint != Taint::kMemory || has_modifier(source, "const")) return;
  Ins side = probe(probe_memory, s, s.proto.imm);
  side.space = s.proto.space;
  side.extra = s.proto.extra;
  side.count = 32;
  side.width = uint8_t(s.proto.width * s.proto.count);
  side.mode = s.proto.mode;
  // A constant address, of a parameter for one, needs no register.
  if (!s.sources.empty()) side.r[0] = file_.place[s.sources[0]];
  if (source.opcode == "ldmatrix" || source.opcode == "stmatrix") {
    side.width = s.proto.width;
    side.count = uint8_t(8 * s.proto.count);
  }
  if (AccessKind(s.proto.extra) == AccessKind::kAtomic) side.mode = uint8_t(s.proto.target);
  if (source.opcode != "cp") return list->push_back(side);
  side.extra = uint16_t(AccessKind::kStore);
  list->push_back(side);
  side.extra = uint16_t(AccessKind::kLoad);
  side.space = uint8_t(ptx::Space::kGlobal);
  side.mode = uint8_t(AddressMode::kRegister64);
  side.imm = int32_t(s.proto.target);
  side.r[0] = file_.place[s.sources[1]];
  if (s.sources.size() > 2) side.r[1] = file_.place[s.sources[2]];
  side.flags = s.proto.flags;
  list->push_back(side);
}

std::vector<Ins> ProbeMaker::leaving(const Step& s) {
  std::vector<Ins> list;
  if (wants(probe_bits::kEdges) && s.run == branch && s.guard >= 0) {
    list.push_back(probe(probe_edges, s, next_edge()));
  }
  if (wants(probe_bits::kDigest) && s.run != barrier) list.push_back(probe(probe_taken, s, 0));
  for (Ins& ins : list) ins.guard = guard_of(s, file_);
  return list;
}

std::vector<Ins> ProbeMaker::after(const Step& s, const Ins& ins) {
  std::vector<Ins> list;
  if (counts_behind(s)) add_execution_probes(s, &list);
  if (wants(probe_bits::kDigest)) add_value_probe(s, ins, &list);
  return list;
}

void ProbeMaker::add_value_probe(const Step& s, const Ins& ins, std::vector<Ins>* list) {
  if (s.source->cut_to_32_bits && !s.counts) return;  // on the way to a value
  const bool effects = s.taint == Taint::kMemory || s.taint == Taint::kSideEffect;
  const bool produces = !s.destinations.empty();
  if (!produces && (!effects || s.sources.empty() || s.run == warp_sync)) return;
  Ins values = probe(probe_values, s, 0);
  if (!produces) values.imm = ins.imm ^ int64_t(uint64_t{ins.target} << 32);
  Meta& m = out_.meta.back();
  for (uint32_t r : produces ? s.destinations : s.sources) {
    values.r[m.sources] = file_.place[r];
    m.classes[m.sources++] = lowered_.registers[r].cls;
  }
  list->push_back(values);
}

}  // namespace kv::simt
