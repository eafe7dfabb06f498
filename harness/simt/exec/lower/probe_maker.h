// Purpose: the probes (exec/probe.h) that belong to a step.
// Contract: for one program, step by step in code order. Each probe gets a Meta of its own, without
// taint, so that undefined data pass it by. What `before` and `after` give stands inside the step's
// guard.
// Example:  append(probes.before(s)); out.code.push_back(ins); append(probes.after(s, ins));
#pragma once

#include <vector>

#include "harness/simt/exec/lower/allocate.h"
#include "harness/simt/exec/lower/lower.h"
#include "harness/simt/exec/probe.h"

namespace kv::simt {

class ProbeMaker {
 public:
  ProbeMaker(const Lowered& lowered, const RegisterFile& file, const ProbePlan& plan,
             Program* program)
      : lowered_(lowered), file_(file), plan_(plan), out_(*program) {}

  /// At the kernel's first instruction.
  std::vector<Ins> entry();
  std::vector<Ins> before(const Step& s);
  /// Before an instruction that ends a block: which way it leaves.
  std::vector<Ins> leaving(const Step& s);
  /// The values that it made or moved.
  std::vector<Ins> after(const Step& s, const Ins& ins);
  /// An instruction of no class above that belongs to the step.
  Ins probe(Handler run, const Step& s, int64_t imm);

 private:
  bool wants(uint32_t bit) const { return plan_.bits & bit; }
  int64_t next_edge() { return int64_t(plan_.edge_base + 2 * edges_++); }
  static bool counts_behind(const Step& s);
  void add_memory_probes(const Step& s, std::vector<Ins>* list);
  void add_execution_probes(const Step& s, std::vector<Ins>* list);
  void add_value_probe(const Step& s, const Ins& ins, std::vector<Ins>* list);

  const Lowered& lowered_;
  const RegisterFile& file_;
  const ProbePlan& plan_;
  Program& out_;
  uint64_t edges_ = 0;
};

/// Ins::guard of a step.
uint16_t guard_of(const Step& s, const RegisterFile& file);

}  // namespace kv::simt
