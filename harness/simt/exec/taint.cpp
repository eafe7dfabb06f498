#include "harness/simt/exec/taint.h"

#include <algorithm>
#include <cstring>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint_rules.h"

namespace kv::simt {
namespace {

TaintFile& file_of(Warp& w) {
  TaintFile& t = w.cold->taint;
  if (t.slot_tainted.empty()) {
    const Program& p = program_of(w);
    t.bits.assign(size_t(p.slots) * 32, 0);
    t.predicates.assign(p.predicates + 1, 0);
    t.slot_tainted.assign(p.slots, 0);
    t.slot_origin.resize(p.slots);
    t.predicate_origin.resize(p.predicates + 1);
  }
  return t;
}

bool operand_tainted(const TaintFile& t, char cls, uint16_t index) {
  return cls == 'p' ? t.predicates[index] != 0 : t.slot_tainted[index] != 0;
}

/// All lanes of a register, as 64-bit words.
void load_bits(const TaintFile& t, char cls, uint16_t index, uint64_t (&out)[32]) {
  for (uint32_t l = 0; l < 32; ++l) {
    if (cls == 'p') {
      out[l] = t.predicates[index] >> l & 1 ? ~uint64_t{0} : 0;
    } else if (cls == '2') {
      out[l] = t.bits[size_t(index) * 32 + l];
    } else {
      uint64_t v;
      std::memcpy(&v, reinterpret_cast<const uint8_t*>(t.bits.data() + size_t(index) * 32) + 8 * l,
                  8);
      out[l] = v;
    }
  }
}

void load_values(Warp& w, char cls, uint16_t index, uint64_t (&out)[32]) {
  for (uint32_t l = 0; l < 32; ++l) {
    if (cls == 'p') {
      out[l] = w.predicates[index] >> l & 1;
    } else if (cls == '2') {
      out[l] = slot<uint32_t>(w, index)[l];
    } else {
      out[l] = slot<uint64_t>(w, index)[l];
    }
  }
}

/// Destination `index` becomes `bits` in the lanes of `mask`.
void store_bits(Warp& w, TaintFile& t, char cls, uint16_t index, uint32_t mask,
                const uint64_t (&bits)[32], const Origin& origin) {
  if (cls == 'p') {
    uint32_t undefined = 0;
    for (uint32_t l = 0; l < 32; ++l) undefined |= uint32_t(bits[l] != 0) << l;
    return set_undefined_predicate(w, index, mask, undefined, origin);
  }
  uint64_t any = 0;
  const bool wide = cls == '4';
  for (uint32_t l = 0; l < 32; ++l) {
    uint8_t* base = reinterpret_cast<uint8_t*>(t.bits.data() + size_t(index) * 32);
    if (mask >> l & 1) {
      if (wide) {
        std::memcpy(base + 8 * l, &bits[l], 8);
      } else {
        const uint32_t low = uint32_t(bits[l]);
        std::memcpy(base + 4 * l, &low, 4);
      }
    }
    uint64_t now = 0;
    std::memcpy(&now, base + (wide ? 8 : 4) * l, wide ? 8 : 4);
    any |= now;
  }
  uint8_t& flag = t.slot_tainted[index];
  if (any && !flag) t.slot_origin[index] = origin;
  w.tainted += uint32_t(any != 0) - uint32_t(flag != 0);
  flag = any != 0;
}

const Origin& first_origin(const TaintFile& t, const Meta& m, const Ins* i) {
  for (uint32_t k = 0; k < m.sources; ++k) {
    const uint32_t n = m.destinations + k;
    if (!operand_tainted(t, m.classes[n], i->r[n])) continue;
    return m.classes[n] == 'p' ? t.predicate_origin[i->r[n]] : t.slot_origin[i->r[n]];
  }
  return t.predicate_origin.back();  // that of an undefined guard
}

bool has_effects(const Meta& m) {
  return m.taint == Taint::kMemory || m.taint == Taint::kSideEffect;
}

/// Undefined addresses and decisions.
void check_effects(Warp& w, const Ins* i, const Meta& m, const TaintFile& t) {
  for (uint32_t k = 0; k < m.sources; ++k) {
    const uint32_t n = m.destinations + k;
    if (!operand_tainted(t, m.classes[n], i->r[n])) continue;
    const bool is_address = m.taint == Taint::kMemory && n == m.destinations;
    if (m.taint == Taint::kMemory && !is_address) continue;  // data: memory decides
    for (uint32_t l = 0; l < 32; ++l) {
      if (!(w.exec >> l & 1)) continue;
      const bool bad = m.classes[n] == 'p'
                           ? t.predicates[i->r[n]] >> l & 1
                           : undefined_bits(w, i->r[n], m.classes[n] == '4', l) != 0;
      if (!bad) continue;
      const Origin& from =
          m.classes[n] == 'p' ? t.predicate_origin[i->r[n]] : t.slot_origin[i->r[n]];
      report_undefined(w, i, l, from, is_address ? "an address" : "a decision");
      break;
    }
  }
}

void clear_destinations(Warp& w, const Ins* i, const Meta& m, TaintFile& t) {
  const uint64_t none[32] = {};
  for (uint32_t k = 0; k < m.destinations; ++k) {
    if (operand_tainted(t, m.classes[k], i->r[k])) {
      store_bits(w, t, m.classes[k], i->r[k], w.exec, none, {});
    }
  }
}

void propagate(Warp& w, const Ins* i, const Meta& m, TaintFile& t) {
  const Origin origin = first_origin(t, m, i);
  TaintRule rule;
  rule.meta = &m;
  rule.ins = i;
  rule.exec = w.exec;
  for (uint32_t k = 0; k < m.sources && k < 10; ++k) {
    const uint32_t n = m.destinations + k;
    load_bits(t, m.classes[n], i->r[n], rule.undefined[k]);
    load_values(w, m.classes[n], i->r[n], rule.value[k]);
  }
  apply_taint_rule(rule);
  for (uint32_t k = 0; k < m.destinations; ++k) {
    if (w.guard_undefined) {
      for (uint32_t l = 0; l < 32; ++l) {
        if (w.guard_undefined >> l & 1) rule.result[k][l] = ~uint64_t{0};
      }
    }
    store_bits(w, t, m.classes[k], i->r[k], w.exec | w.guard_undefined, rule.result[k], origin);
  }
}

/// A guard that is undefined in some lanes. An instruction with effects is reported; any other
/// leaves an undefined result in those lanes, whether or not it is executed.
void undefined_guard(Warp& w, const Ins* i, TaintFile& t) {
  const uint16_t p = i->guard >> 1;
  w.guard_undefined = t.predicates[p] & w.active;
  if (!w.guard_undefined) return;
  t.predicate_origin.back() = t.predicate_origin[p];
  const Ins* guarded = i + size_t{2} * i->extra;
  const Meta& m = meta_of(w, guarded);
  if (has_effects(m)) {
    report_undefined(w, guarded, uint32_t(__builtin_ctz(w.guard_undefined)), t.predicate_origin[p],
                     "the guard of an instruction with effects");
    w.guard_undefined = 0;
    return;
  }
  uint64_t all[32];
  std::fill(all, all + 32, ~uint64_t{0});
  for (uint32_t k = 0; k < m.destinations; ++k) {
    store_bits(w, t, m.classes[k], guarded->r[k], w.guard_undefined, all, t.predicate_origin[p]);
  }
}

/// Loads, stores and atomics. With undefined registers memory is marked lane by lane. What the
/// others move (ldmatrix, stmatrix, cp.async) their own handlers see; a register of theirs may be
/// undefined in a lane that has not arrived yet.
bool moves_registers(const Meta& m) {
  if (m.taint != Taint::kMemory || !m.source) return false;
  const std::string_view opcode = m.source->opcode;
  return opcode != "ldmatrix" && opcode != "stmatrix" && opcode != "cp";
}

const Ins* taint_step(Warp& w, const Ins* step) {
  const Ins* i = step + 1;
  if (w.tainted == 0 && w.guard_undefined == 0) {
    const uint32_t pc = pc_of(w, step);
    w.code = w.clean_code;
    KV_NEXT(w, w.code + pc);
  }
  const Meta& m = meta_of(w, i);
  TaintFile& t = file_of(w);
  if (i->run == guard_begin) {
    undefined_guard(w, i, t);
    KV_NEXT(w, i);
  }
  if (i->run == guard_end) {
    w.guard_undefined = 0;
    KV_NEXT(w, i);
  }
  if (i->run == branch && i->guard != kNoGuard) {
    const uint32_t undefined = t.predicates[i->guard >> 1] & w.active;
    if (undefined) {
      report_undefined(w, i, uint32_t(__builtin_ctz(undefined)), t.predicate_origin[i->guard >> 1],
                       "a branch");
      set_undefined_predicate(w, i->guard >> 1, undefined, 0, {});
    }
    KV_NEXT(w, i);
  }
  bool tainted = false;
  for (uint32_t k = 0; k < m.sources; ++k) {
    const uint32_t n = m.destinations + k;
    tainted |= operand_tainted(t, m.classes[n], i->r[n]);
  }
  if (has_effects(m)) {
    if (tainted) check_effects(w, i, m, t);
    clear_destinations(w, i, m, t);
    if (tainted && moves_registers(m)) return slow_access(w, i);
    KV_NEXT(w, i);
  }
  if (!tainted && w.guard_undefined == 0) {
    clear_destinations(w, i, m, t);
  } else {
    propagate(w, i, m, t);
  }
  KV_NEXT(w, i);
}

}  // namespace

namespace {

void make_taint_code(Program& program) {
  if (!program.taint_code.empty()) return;
  std::vector<Ins>& code = program.taint_code;
  code.reserve(program.code.size() * 2);
  for (const Ins& ins : program.code) {
    Ins step;
    step.run = taint_step;
    step.meta = ins.meta;
    code.push_back(step);
    code.push_back(ins);
    if (ins.run == branch) code.back().target = ins.target * 2;
    if (ins.run == guard_begin) code.back().target = ins.target * 2 - 1;
  }
}

uint32_t guarded_lanes(const Warp& w, const Ins* i) {
  if (i->guard == kNoGuard) return w.exec;
  const uint32_t p = w.predicates[i->guard >> 1];
  return w.exec & (i->guard & 1 ? ~p : p);
}

/// A register is read that was not written.
[[gnu::noinline]] const Ins* unwritten(Warp& w, const Ins* i, uint32_t lanes) {
  const Program& p = program_of(w);
  for (uint32_t k = 0; k < i->count; ++k) {
    uint32_t& mask = w.predicates[i->r[k]];
    const uint32_t missing = lanes & ~mask;
    if (!missing) continue;
    mask |= missing;
    const auto [place, cls] = p.watched[i->r[k] - p.first_mask];
    uint64_t all[32];
    std::fill(all, all + 32, ~uint64_t{0});
    store_bits(w, file_of(w), cls, place, missing, all, {});
  }
  return resume_after(w, i);
}

}  // namespace

const Ins* check_written(Warp& w, const Ins* i) {
  const uint32_t lanes = guarded_lanes(w, i);
  uint32_t missing = 0;
  for (uint32_t k = 0; k < i->count; ++k) missing |= lanes & ~w.predicates[i->r[k]];
  if (missing) [[unlikely]]
    return unwritten(w, i, lanes);
  KV_NEXT(w, i + 1);
}

const Ins* mark_written(Warp& w, const Ins* i) {
  const uint32_t lanes = guarded_lanes(w, i);
  for (uint32_t k = 0; k < i->count; ++k) w.predicates[i->r[k]] |= lanes;
  KV_NEXT(w, i + 1);
}

uint64_t undefined_bits(const Warp& w, uint16_t slot, bool wide, uint32_t lane) {
  const TaintFile& t = w.cold->taint;
  if (t.slot_tainted.empty() || !t.slot_tainted[slot]) return 0;
  const auto* base = reinterpret_cast<const uint8_t*>(t.bits.data() + size_t(slot) * 32);
  uint64_t v = 0;
  std::memcpy(&v, base + (wide ? 8 : 4) * lane, wide ? 8 : 4);
  return v;
}

const Origin& origin_of(const Warp& w, uint16_t slot) { return w.cold->taint.slot_origin[slot]; }

void set_undefined(Warp& w, uint16_t slot, bool wide, uint32_t lane, uint64_t bits,
                   const Origin& origin) {
  TaintFile& t = file_of(w);
  uint8_t& flag = t.slot_tainted[slot];
  if (bits == 0 && !flag) return;
  const size_t bytes = wide ? 8 : 4;
  auto* const base = reinterpret_cast<uint8_t*>(t.bits.data() + size_t(slot) * 32);
  std::memcpy(base + bytes * lane, &bits, bytes);
  uint64_t now = 0;
  std::memcpy(&now, base + bytes * lane, bytes);
  if (now && !flag) t.slot_origin[slot] = origin;
  const bool any =
      now || std::any_of(base, base + 32 * bytes, [](uint8_t byte) { return byte != 0; });
  w.tainted += uint32_t(any) - uint32_t(flag != 0);
  flag = any;
}

void set_undefined_predicate(Warp& w, uint16_t predicate, uint32_t lanes, uint32_t undefined,
                             const Origin& origin) {
  TaintFile& t = file_of(w);
  uint32_t& p = t.predicates[predicate];
  const bool before = p != 0;
  p = (p & ~lanes) | (undefined & lanes);
  if (p && !before) t.predicate_origin[predicate] = origin;
  w.tainted += uint32_t(p != 0) - uint32_t(before);
}

const Ins* resume_after(Warp& w, const Ins* i) {
  if (w.tainted == 0 || tainting(w)) return i + 1;
  const uint32_t pc = pc_of(w, i) + 1;
  make_taint_code(*w.launch->cold->program);
  w.code = w.launch->cold->program->taint_code.data();
  return at(w, pc);
}

void clear_taint(Warp& w) {
  w.code = w.clean_code;
  w.guard_undefined = 0;
  if (w.tainted == 0) return;
  w.tainted = 0;
  w.cold->taint.forget();
}

void undefine_lanes(Warp& w, const Ins* i, uint16_t index, uint32_t lanes) {
  Origin origin;
  origin.load = meta_of(w, i).source;
  origin.why = "a lane that does not take part";
  for (uint32_t l = 0; l < 32; ++l) {
    if (lanes >> l & 1) set_undefined(w, index, false, l, 0xffffffff, origin);
  }
}

std::string origin_name(const Warp& w, const Origin& origin) {
  if (!origin.load) return "it is in a register that was never written";
  const std::string place = place_name(*origin.load);
  if (origin.why) return "it comes from " + std::string(origin.why) + ", at " + place;
  std::string text = "it was loaded at " + place + " from ";
  const auto space = ptx::Space(origin.space);
  if (space == ptx::Space::kShared) return text + "shared offset " + std::to_string(origin.address);
  if (space == ptx::Space::kLocal) return text + "local offset " + std::to_string(origin.address);
  return text + hex(origin.address) + ", " + extent_name(*w.launch->cold->space, origin.address);
}

void report_undefined(Warp& w, const Ins* i, uint32_t lane, const Origin& origin,
                      const char* what) {
  // The value of a lane that does not take part in a shuffle is a matter of the warp, not of
  // memory.
  const uint32_t kind = origin.why ? KV_SIMT_KIND_BARRIER : KV_SIMT_KIND_UNDEFINED;
  if (origin.why && !(w.launch->checks & KV_SIMT_CHECK_BARRIER)) return;
  if (!w.launch->check_undefined || !fresh_pending(w, i, kind)) return;
  Report r;
  r.kind = kind;
  r.lane = lane;
  r.address = origin.address;
  r.space = ptx::Space(origin.space);
  r.message =
      thread_name(w, lane) + ": undefined data reaches " + what + "; " + origin_name(w, origin);
  if (!origin.load || origin.why) return file(w, i, r);
  file_unless_raced(w, i, r, race_place(w, r.space, origin.address));
}

}  // namespace kv::simt
