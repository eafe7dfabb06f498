#include "harness/simt/exec/lower/coalesce.h"

#include <algorithm>
#include <numeric>

#include "harness/simt/exec/lower/liveness.h"

namespace kv::simt {
namespace {

/// Others may write a lane before they have read what another lane needs.
bool works_lane_by_lane(Taint taint) {
  return taint != Taint::kShuffle && taint != Taint::kMatrix && taint != Taint::kMatrixMove &&
         taint != Taint::kMemory && taint != Taint::kSideEffect;
}

class Coalescer {
 public:
  Coalescer(Lowered& lowered, const std::vector<uint32_t>& live_at_entry)
      : lowered_(lowered),
        move32_(find_form("mov.b32")->run),
        move64_(find_form("mov.b64")->run),
        fixed_(lowered.registers.size()),
        leader_(lowered.registers.size()),
        number_(lowered.registers.size()) {
    std::iota(leader_.begin(), leader_.end(), 0u);
    for (size_t r = 0; r < lowered.registers.size(); ++r) {
      const VirtualRegister& v = lowered.registers[r];
      fixed_[r] = v.constant || v.special >= 0;
    }
    for (uint32_t r : live_at_entry) fixed_[r] = true;
    for (uint32_t k = 0; k < lowered.prologue; ++k) {
      for (uint32_t r : lowered.steps[k].destinations) fixed_[r] = true;
    }
  }

  void run() {
    const std::vector<uint32_t> moves = find_moves();
    if (moves.empty() || count_ > kRegistersMax) return;
    find_conflicts();
    bool merged = false;
    for (uint32_t k : moves) merged |= merge(lowered_.steps[k]);
    if (merged) rename();
  }

 private:
  /// Conflicts are a square of bits.
  static constexpr uint32_t kRegistersMax = 8192;

  bool is_move(const Step& s) const {
    return (s.run == move32_ || s.run == move64_) && s.guard < 0 && !s.control && !s.elsewhere &&
           s.destinations[0] != s.sources[0] && !fixed_[s.destinations[0]] && !fixed_[s.sources[0]];
  }

  /// Those inside of most loops first; numbers the registers that they connect.
  std::vector<uint32_t> find_moves() {
    const std::vector<Step>& steps = lowered_.steps;
    std::vector<int> deeper(steps.size() + 1);
    std::vector<uint32_t> moves;
    for (uint32_t k = 0; k < steps.size(); ++k) {
      if (steps[k].target >= 0 && uint32_t(steps[k].target) <= k) {
        ++deeper[size_t(steps[k].target)];
        --deeper[k + 1];
      }
      if (!is_move(steps[k])) continue;
      moves.push_back(k);
      for (uint32_t r : {steps[k].destinations[0], steps[k].sources[0]}) {
        if (number_[r] == 0) number_[r] = ++count_;
      }
    }
    std::partial_sum(deeper.begin(), deeper.end(), deeper.begin());
    std::stable_sort(moves.begin(), moves.end(),
                     [&](uint32_t a, uint32_t b) { return deeper[a] > deeper[b]; });
    return moves;
  }

  /// For each numbered register, those that are needed when it is written, and the other way round.
  void find_conflicts() {
    const size_t width = count_ + 1;
    conflicts_.assign(width, BitRow(width));
    members_.assign(width, BitRow(width));
    for (uint32_t n = 1; n < width; ++n) members_[n].set(n);
    const Flow flow = flow_of(lowered_);
    std::vector<bool> followed(number_.size());
    for (size_t r = 0; r < number_.size(); ++r) followed[r] = number_[r] != 0;
    const Liveness live = liveness_of(lowered_, flow, followed);
    for (uint32_t b = 0; b < flow.blocks(); ++b) {
      BitRow now(width);
      live.out[b].for_each([&](uint32_t bit) { now.set(number_[live.registers[bit]]); });
      for (uint32_t k = flow.begin[b + 1]; k-- > flow.begin[b];) step_back(lowered_.steps[k], now);
    }
  }

  void step_back(const Step& s, BitRow& now) {
    const uint32_t copied = is_move(s) ? number_[s.sources[0]] : 0;
    for (uint32_t r : s.destinations) {
      const uint32_t n = number_[r];
      if (n == 0) continue;
      now.for_each([&](uint32_t other) {
        if (other != copied) add_conflict(n, other);
      });
      for (uint32_t other : s.destinations) add_conflict(n, number_[other]);
      if (works_lane_by_lane(s.taint)) continue;
      for (uint32_t other : s.sources) add_conflict(n, number_[other]);
    }
    for (uint32_t r : s.destinations) {
      if (s.guard < 0) now.clear(number_[r]);
    }
    for (uint32_t r : s.sources) {
      if (number_[r]) now.set(number_[r]);
    }
  }

  void add_conflict(uint32_t n, uint32_t m) {
    if (n == m || n == 0 || m == 0) return;
    conflicts_[n].set(m);
    conflicts_[m].set(n);
  }

  uint32_t leader(uint32_t r) {
    while (leader_[r] != r) r = leader_[r] = leader_[leader_[r]];
    return r;
  }

  bool merge(Step& s) {
    const uint32_t to = leader(s.destinations[0]), from = leader(s.sources[0]);
    if (to != from) {
      const uint32_t n = number_[to], m = number_[from];
      if (conflicts_[n].meets(members_[m]) || conflicts_[m].meets(members_[n])) return false;
      conflicts_[n].add(conflicts_[m]);
      members_[n].add(members_[m]);
      leader_[from] = to;
    }
    s.destinations.clear();
    s.sources.clear();
    s.taint = Taint::kNone;
    s.elsewhere = true;
    return true;
  }

  void rename() {
    for (Step& s : lowered_.steps) {
      for (uint32_t& r : s.destinations) r = leader(r);
      for (uint32_t& r : s.sources) r = leader(r);
    }
  }

  Lowered& lowered_;
  const Handler move32_, move64_;
  std::vector<bool> fixed_;
  std::vector<uint32_t> leader_, number_;
  uint32_t count_ = 0;
  std::vector<BitRow> conflicts_, members_;
};

}  // namespace

void coalesce_moves(Lowered& lowered, const std::vector<uint32_t>& live_at_entry) {
  Coalescer(lowered, live_at_entry).run();
}

}  // namespace kv::simt
