#include "harness/simt/exec/lower/optimistic.h"

#include <numeric>
#include <set>
#include <tuple>

#include "harness/simt/exec/atomic.h"
#include "harness/simt/exec/cold.h"

namespace kv::simt {
namespace {

/// Registers that moves connect, wherever they stand in the program.
class Copies {
 public:
  explicit Copies(const Lowered& lowered) : leader_(lowered.registers.size()) {
    std::iota(leader_.begin(), leader_.end(), 0u);
    for (const Step& s : lowered.steps) {
      const bool moves = s.taint == Taint::kCopy && s.destinations.size() == 1 &&
                         s.sources.size() == 1 && !lowered.registers[s.sources[0]].constant;
      if (moves) leader_[of(s.destinations[0])] = of(s.sources[0]);
    }
  }
  uint32_t of(uint32_t reg) {
    while (leader_[reg] != reg) reg = leader_[reg] = leader_[leader_[reg]];
    return reg;
  }

 private:
  std::vector<uint32_t> leader_;
};

/// Where a value is from: address register, offset, width, and the register that has the value.
using Place = std::tuple<uint32_t, int64_t, uint8_t, uint32_t>;

bool is_swap(const Step& s) {
  return AccessKind(s.proto.extra) == AccessKind::kAtomic && s.sources.size() == 3 &&
         AddressMode(s.proto.target) != AddressMode::kConstant &&
         AtomicKind(s.proto.mode >> 4) == AtomicKind::kCompareSwap;
}

bool is_plain_read(const Step& s) {
  return AccessKind(s.proto.extra) == AccessKind::kLoad && s.proto.count == 1 &&
         s.sources.size() == 1 && s.destinations.size() == 1 &&
         !(s.proto.flags & access_flags::kStrong);
}

}  // namespace

void mark_optimistic_reads(Lowered& lowered) {
  const auto accesses = [](const Step& s) { return s.taint == Taint::kMemory; };
  std::vector<const Step*> swaps;
  for (const Step& s : lowered.steps) {
    if (accesses(s) && is_swap(s)) swaps.push_back(&s);
  }
  if (swaps.empty()) return;
  Copies copies(lowered);
  std::set<Place> expected;
  for (const Step* s : swaps) {
    expected.insert(
        {copies.of(s->sources[0]), s->proto.imm, s->proto.width, copies.of(s->sources[1])});
  }
  const FormRow* any_access = find_form("~access");
  for (Step& s : lowered.steps) {
    if (!accesses(s) || !is_plain_read(s)) continue;
    const Place place = {copies.of(s.sources[0]), s.proto.imm, s.proto.width,
                         copies.of(s.destinations[0])};
    if (expected.count(place) == 0) continue;
    s.run = any_access->run;
    s.proto.flags |= access_flags::kStrong;
  }
}

}  // namespace kv::simt
