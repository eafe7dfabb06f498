#include "harness/simt/exec/lower/hoist.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/lower/flow.h"

namespace kv::simt {
namespace {

/// Results that depend on nothing but the values of sources.
bool is_pure(Taint taint) {
  switch (taint) {
    case Taint::kNone:  // lane masks, clocks
    case Taint::kShuffle:
    case Taint::kMatrix:
    case Taint::kMatrixMove:
    case Taint::kMemory:
    case Taint::kSideEffect:
      return false;
    default:
      return true;
  }
}

class Hoister {
 public:
  Hoister(Lowered& lowered, const std::vector<uint32_t>& live_at_entry, uint64_t parameter_bytes)
      : lowered_(lowered),
        parameter_bytes_(parameter_bytes),
        writers_(lowered.registers.size()),
        invariant_(lowered.registers.size()),
        known_(lowered.registers.size()),
        alias_(lowered.registers.size()),
        any_access_(find_form("~access")->run),
        moves_{find_form("mov.b32")->run, find_form("mov.b64")->run, find_form("mov.pred")->run},
        add_(find_form("add.u64")->run) {
    std::iota(alias_.begin(), alias_.end(), 0u);
    const Flow flow = flow_of(lowered);
    leads_.resize(lowered.steps.size() + 1);
    for (uint32_t k : flow.begin) leads_[k] = true;
    for (const Step& s : lowered.steps) {
      for (uint32_t r : s.destinations) ++writers_[r];
    }
    for (uint32_t r : live_at_entry) writers_[r] = kSeveral;
    for (size_t r = 0; r < lowered.registers.size(); ++r) {
      const VirtualRegister& v = lowered.registers[r];
      invariant_[r] = v.constant || (v.special >= 0 && !changes_with_block(Special(v.special)));
      if (v.constant) known_[r] = v.value;
    }
  }

  void run() {
    bool found = true;  // something that a step earlier in the code may wait for
    for (int pass = 0; found && pass < kPassesMax; ++pass) {
      found = false;
      for (uint32_t k = 0; k < lowered_.steps.size(); ++k) {
        Step& s = lowered_.steps[k];
        for (uint32_t& r : s.sources) r = alias_[r];
        if (is_copy(s) || may_move(s)) {
          found = true;
          take(std::exchange(s, left_behind(s)));
        } else if (writes_invariant(s)) {
          found |= split(k);
        }
      }
    }
    for (Step& s : lowered_.steps) {
      for (uint32_t& r : s.sources) r = alias_[r];
      if (s.guard >= 0) s.guard = int32_t(alias_[size_t(s.guard)]);
    }
    if (!front_.empty()) put_in_front();
  }

 private:
  static constexpr uint32_t kSeveral = 2;
  // Limits, so that no code takes long: what they leave out stays where it is.
  static constexpr int kPassesMax = 4;
  static constexpr uint32_t kReachMax = 1024;  // steps in which a value is looked for
  /// What a step computes: its handler, what the handler is told, the sources.
  using Value = std::tuple<Handler, std::vector<int64_t>, std::vector<uint32_t>>;

  static Value value_of(const Step& s) {
    const Ins& p = s.proto;
    return {s.run, {p.width, p.count, p.space, p.mode, p.flags, p.extra, p.imm}, s.sources};
  }

  void take(Step moved) {
    if (!is_known(moved)) front_.push_back(std::move(moved));
  }

  /// Nothing has to be done for it: its result is the value of another register.
  bool is_known(const Step& s) {
    if (is_move(s)) {
      alias_[s.destinations[0]] = s.sources[0];
      return true;
    }
    const auto [entry, fresh] = values_.try_emplace(value_of(s), s.destinations);
    for (size_t k = 0; k < s.destinations.size() && !fresh; ++k) {
      alias_[s.destinations[k]] = entry->second[k];
    }
    return !fresh;
  }

  bool is_move(const Step& s) const {
    return std::find(std::begin(moves_), std::end(moves_), s.run) != std::end(moves_);
  }

  static bool is_plain(const Step& s) {
    return !s.elsewhere && !s.control && !s.synchronises && s.guard < 0 && !s.destinations.empty();
  }

  bool stands_alone(const Step& s) const {
    return is_plain(s) && std::all_of(s.destinations.begin(), s.destinations.end(),
                                      [this](uint32_t r) { return writers_[r] == 1; });
  }

  /// Of a register that a block never changes, %ctaid among them.
  bool is_copy(const Step& s) const {
    return is_move(s) && stands_alone(s) &&
           (invariant_[s.sources[0]] || lowered_.registers[s.sources[0]].special >= 0);
  }

  bool may_move(Step& s) {
    if (!stands_alone(s) || !makes_invariant(s)) return false;
    for (uint32_t r : s.destinations) invariant_[r] = true;
    evaluate(s);
    return true;
  }

  bool makes_invariant(Step& s) const {
    for (uint32_t r : s.sources) {
      if (!invariant_[r]) return false;
    }
    return s.taint == Taint::kMemory ? takes_parameter(s) : !s.sources.empty() && is_pure(s.taint);
  }

  /// An invariant value for a register that has others too.
  bool writes_invariant(Step& s) const {
    if (!is_plain(s) || s.destinations.size() != 1) return false;
    const char cls = lowered_.registers[s.destinations[0]].cls;
    return (cls == '2' || cls == '4') && makes_invariant(s);
  }

  /// The value gets a register of its own, which what follows in the block reads; the old register
  /// becomes a copy. False: nothing has changed.
  bool split(uint32_t k) {
    Step& s = lowered_.steps[k];
    const uint32_t old = s.destinations[0];
    const bool moves = is_move(s);
    if (!moves) {
      const auto own = uint32_t(lowered_.registers.size());
      lowered_.registers.push_back({lowered_.registers[old].cls, false, 0, -1});
      writers_.push_back(1);
      invariant_.push_back(true);
      known_.emplace_back();
      alias_.push_back(own);
      Step copy = copy_of(s, own);
      s.destinations = {own};
      evaluate(s);
      take(std::exchange(s, std::move(copy)));
    }
    return rename(k, old, alias_[s.sources[0]]) || !moves;
  }

  Step copy_of(const Step& s, uint32_t from) const {
    const FormRow* row = find_form(lowered_.registers[from].cls == '4' ? "mov.b64" : "mov.b32");
    Step copy;
    copy.run = row->run;
    copy.taint = row->taint;
    copy.source_bits = row->source_bits;
    copy.destinations = s.destinations;
    copy.sources = {from};
    copy.counts = s.counts;
    copy.source = s.source;
    return copy;
  }

  /// In what follows in the block, up to another write. True if `from` is read there.
  bool rename(uint32_t k, uint32_t from, uint32_t to) {
    bool found = false;
    const uint32_t last = k + kReachMax;
    while (k < last && !lowered_.steps[k].control && !leads_[++k]) {
      Step& s = lowered_.steps[k];
      for (uint32_t& r : s.sources) {
        if (r != from) continue;
        r = to;
        found = true;
      }
      for (uint32_t r : s.destinations) {
        if (r == from) return found;
      }
    }
    return found;
  }

  /// A plain load of a kernel parameter that certainly succeeds; its address becomes a constant.
  bool takes_parameter(Step& s) const {
    const bool loads = AccessKind(s.proto.extra) == AccessKind::kLoad && s.run != any_access_ &&
                       ptx::Space(s.proto.space) == ptx::Space::kParam;
    if (!loads || AddressMode(s.proto.mode) == AddressMode::kRegister32) return false;
    auto at = uint64_t(s.proto.imm);
    if (AddressMode(s.proto.mode) == AddressMode::kRegister64) {
      if (!known_[s.sources[0]]) return false;
      at += *known_[s.sources[0]];
    }
    const uint64_t bytes = uint64_t{s.proto.width} * s.proto.count;
    if (at % bytes != 0 || at > parameter_bytes_ || parameter_bytes_ - at < bytes) return false;
    s.proto.mode = uint8_t(AddressMode::kConstant);
    s.proto.imm = int64_t(at);
    s.sources.clear();
    return true;
  }

  /// Addresses of parameters are sums of constants.
  void evaluate(const Step& s) {
    if (s.run == add_ && known_[s.sources[0]] && known_[s.sources[1]]) {
      known_[s.destinations[0]] = *known_[s.sources[0]] + *known_[s.sources[1]];
    }
  }

  /// What counts at the place of a step that goes.
  static Step left_behind(const Step& moved) {
    Step s;
    s.taint = Taint::kNone;
    s.counts = moved.counts;
    s.elsewhere = true;
    s.source = moved.source;
    return s;
  }

  void put_in_front() {
    Step end;
    end.run = leave_prologue;
    end.taint = Taint::kNone;
    end.control = true;
    end.source = lowered_.steps[0].source;
    front_.push_back(std::move(end));
    lowered_.prologue = uint32_t(front_.size());
    for (Step& s : front_) s.counts = false;
    for (Step& s : lowered_.steps) {
      if (s.target >= 0) s.target += int32_t(front_.size());
    }
    front_.insert(front_.end(), std::make_move_iterator(lowered_.steps.begin()),
                  std::make_move_iterator(lowered_.steps.end()));
    lowered_.steps = std::move(front_);
  }

  Lowered& lowered_;
  const uint64_t parameter_bytes_;
  std::vector<bool> leads_;  // a basic block begins
  std::vector<uint32_t> writers_;
  std::vector<bool> invariant_;
  std::vector<std::optional<uint64_t>> known_;
  std::vector<uint32_t> alias_;
  std::map<Value, std::vector<uint32_t>> values_;
  std::vector<Step> front_;
  const Handler any_access_, moves_[3], add_;
};

}  // namespace

void hoist_invariants(Lowered& lowered, const std::vector<uint32_t>& live_at_entry,
                      uint64_t parameter_bytes) {
  Hoister(lowered, live_at_entry, parameter_bytes).run();
}

}  // namespace kv::simt
