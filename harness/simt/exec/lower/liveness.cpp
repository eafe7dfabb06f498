#include "harness/simt/exec/lower/liveness.h"

namespace kv::simt {
namespace {

/// Calls `visit(register)` for the followed registers that block `b` reads before it has certainly
/// written them. `written` holds the last block, from 1, that wrote a register.
void each_exposed(const Lowered& lowered, const Flow& flow, uint32_t b,
                  std::vector<uint32_t>& written, const std::vector<bool>& followed,
                  const auto& visit) {
  const auto use = [&](uint32_t r) {
    if (followed[r] && written[r] != b + 1) visit(r);
  };
  for (uint32_t k = flow.begin[b]; k < flow.begin[b + 1]; ++k) {
    const Step& s = lowered.steps[k];
    for (uint32_t r : s.sources) use(r);
    if (s.guard >= 0) use(uint32_t(s.guard));
    for (uint32_t r : s.destinations) {
      if (s.guard < 0) written[r] = b + 1;
    }
  }
}

}  // namespace

Liveness liveness_of(const Lowered& lowered, const Flow& flow, const std::vector<bool>& followed) {
  const size_t registers = lowered.registers.size();
  Liveness live;
  std::vector<uint32_t> written(registers);
  std::vector<bool> exposed(registers);
  for (uint32_t b = 0; b < flow.blocks(); ++b) {
    each_exposed(lowered, flow, b, written, followed, [&](uint32_t r) { exposed[r] = true; });
  }
  std::vector<uint32_t> bit(registers);
  for (uint32_t r = 0; r < registers; ++r) {
    if (!exposed[r]) continue;
    bit[r] = uint32_t(live.registers.size());
    live.registers.push_back(r);
  }
  std::vector<BitRow> kill(flow.blocks(), BitRow(live.registers.size()));
  live.in = live.out = kill;
  written.assign(registers, 0);
  for (uint32_t b = 0; b < flow.blocks(); ++b) {
    each_exposed(lowered, flow, b, written, exposed, [&](uint32_t r) { live.in[b].set(bit[r]); });
    for (uint32_t k = flow.begin[b]; k < flow.begin[b + 1]; ++k) {
      const Step& s = lowered.steps[k];
      for (uint32_t r : s.destinations) {
        if (s.guard < 0 && exposed[r]) kill[b].set(bit[r]);
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = flow.blocks(); b-- > 0;) {
      for (uint32_t next : flow.successors[b]) live.out[b].add(live.in[next]);
      changed |= live.in[b].add_without(live.out[b], kill[b]);
    }
  }
  return live;
}

}  // namespace kv::simt
