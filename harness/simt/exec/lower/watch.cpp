#include "harness/simt/exec/lower/watch.h"

#include <algorithm>

#include "harness/simt/exec/lower/flow.h"

namespace kv::simt {
namespace {

constexpr uint32_t kUnwatched = ~0u;

class Watcher {
 public:
  Watcher(const Lowered& lowered, const std::vector<uint32_t>& watched)
      : lowered_(lowered), count_(watched.size()), flow_(flow_of(lowered)) {
    index_.assign(lowered.registers.size(), kUnwatched);
    for (size_t k = 0; k < watched.size(); ++k) index_[watched[k]] = uint32_t(k);
  }

  Watch run() {
    const std::vector<BitRow> known = solve();
    const size_t steps = lowered_.steps.size();
    watch_ = {std::vector<std::vector<uint16_t>>(steps), std::vector<std::vector<uint16_t>>(steps),
              std::vector<std::vector<uint16_t>>(steps)};
    for (uint32_t b = 0; b < flow_.blocks(); ++b) {
      BitRow now = known[b];
      for (uint32_t k = flow_.begin[b]; k < flow_.begin[b + 1]; ++k) place(k, now);
    }
    return std::move(watch_);
  }

 private:
  /// Registers of which every path to the start of a block says whether they are written.
  std::vector<BitRow> solve() const {
    std::vector<BitRow> said(flow_.blocks(), BitRow(count_));  // in the block itself
    for (uint32_t b = 0; b < flow_.blocks(); ++b) {
      for (uint32_t k = flow_.begin[b]; k < flow_.begin[b + 1]; ++k)
        say(lowered_.steps[k], said[b]);
    }
    std::vector<BitRow> known(flow_.blocks(), BitRow(count_, true));
    known[0] = BitRow(count_);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < flow_.blocks(); ++b) {
        BitRow out = known[b];
        out.add(said[b]);
        for (uint32_t next : flow_.successors[b]) changed |= known[next].keep(out);
      }
    }
    return known;
  }

  void say(const Step& s, BitRow& row) const {
    const auto set = [&](uint32_t r) {
      if (index_[r] != kUnwatched) row.set(index_[r]);
    };
    if (s.guard >= 0) return set(uint32_t(s.guard));
    for (uint32_t r : s.sources) set(r);
    for (uint32_t r : s.destinations) set(r);
  }

  void place(uint32_t k, BitRow& now) {
    const Step& s = lowered_.steps[k];
    const auto note = [&](uint32_t r, std::vector<uint16_t>& list) {
      const uint32_t index = index_[r];
      if (index == kUnwatched || now.get(index)) return;
      if (std::find(list.begin(), list.end(), index) == list.end()) {
        list.push_back(uint16_t(index));
      }
    };
    if (s.guard >= 0) note(uint32_t(s.guard), watch_.guard_checks[k]);
    for (uint32_t r : s.sources) note(r, watch_.checks[k]);
    for (uint32_t r : s.destinations) note(r, watch_.marks[k]);
    say(s, now);
  }

  const Lowered& lowered_;
  size_t count_;
  Flow flow_;
  std::vector<uint32_t> index_;
  Watch watch_;
};

}  // namespace

Watch watch_registers(const Lowered& lowered, const std::vector<uint32_t>& watched) {
  if (lowered.steps.empty() || watched.empty()) return {};
  return Watcher(lowered, watched).run();
}

}  // namespace kv::simt
