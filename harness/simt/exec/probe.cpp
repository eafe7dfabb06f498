#include "harness/simt/exec/probe.h"

namespace kv::simt {
namespace {

/// The finaliser of MurmurHash3: every bit of the input changes half of the output.
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

uint32_t taking(const Warp& w, const Ins* i) {
  if (i->guard == kNoGuard) return w.active;
  const uint32_t p = w.predicates[i->guard >> 1];
  return w.active & (i->guard & 1 ? ~p : p);
}

void count_edge(Warp& w, uint64_t number) {
  const LaunchCold& cold = *w.launch->cold;
  uint8_t& counter = cold.edges[number % cold.edge_count];
  if (counter != 255) ++counter;
}

/// A key for what one lane does at one instruction.
uint64_t event(const Warp& w, const Ins* i, uint32_t lane) {
  const uint64_t thread = w.block->index << 10 | (w.id << 5 | lane);
  return mixed(thread ^ uint64_t(meta_of(w, i).source->ptx_line) << 40);
}

uint64_t operand_value(Warp& w, char cls, uint16_t index, uint32_t lane) {
  if (cls == 'p') return w.predicates[index] >> lane & 1;
  if (cls == '2') return slot<uint32_t>(w, index)[lane];
  if (cls == '4') return slot<uint64_t>(w, index)[lane];
  const uint64_t* const pair = slot<uint64_t>(w, index) + 2 * size_t(lane);
  return mixed(pair[0]) ^ pair[1];
}

}  // namespace

const Ins* probe_executions(Warp& w, const Ins* i) {
  ++w.launch->cold->executions[i->imm];
  KV_NEXT(w, i + 1);
}

const Ins* probe_watched(Warp& w, const Ins* i) {
  ++w.launch->counters->mutated_executions;
  KV_NEXT(w, i + 1);
}

const Ins* probe_edges(Warp& w, const Ins* i) {
  const uint32_t taken = taking(w, i);
  if (taken) count_edge(w, uint64_t(i->imm) + 1);
  if (taken != w.active) count_edge(w, uint64_t(i->imm));
  KV_NEXT(w, i + 1);
}

const Ins* probe_values(Warp& w, const Ins* i) {
  const Meta& m = meta_of(w, i);
  uint64_t sum = 0;
  for (uint32_t mask = w.exec; mask; mask &= mask - 1) {
    const auto lane = uint32_t(__builtin_ctz(mask));
    uint64_t value = event(w, i, lane) ^ uint64_t(i->imm);
    for (uint32_t k = 0; k < m.sources; ++k) {
      value = mixed(value + operand_value(w, m.classes[k], i->r[k], lane));
    }
    sum += value;
  }
  w.launch->counters->values_digest += sum;
  KV_NEXT(w, i + 1);
}

const Ins* probe_taken(Warp& w, const Ins* i) {
  uint64_t sum = 0;
  for (uint32_t mask = taking(w, i); mask; mask &= mask - 1) {
    sum += event(w, i, uint32_t(__builtin_ctz(mask)));
  }
  w.launch->counters->values_digest += sum;
  KV_NEXT(w, i + 1);
}

}  // namespace kv::simt
