#include "harness/simt/exec/lower/allocate.h"

#include <algorithm>
#include <queue>

#include "harness/simt/exec/lower/liveness.h"

namespace kv::simt {
namespace {

struct Interval {
  uint32_t first = ~0u, last = 0;
  void cover(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

/// Free places of each width; the lowest first, so that the file stays dense.
class Places {
 public:
  uint32_t take(uint32_t width) {
    auto& free = free_[width];
    if (!free.empty()) {
      const uint32_t place = free.top();
      free.pop();
      return place;
    }
    const uint32_t place = top_;
    top_ += width;
    return place;
  }
  void give(uint32_t width, uint32_t place) { free_[width].push(place); }
  uint32_t top() const { return top_; }

 private:
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_[5];
  uint32_t top_ = 0;
};

uint32_t slots_of(char cls) { return cls == '8' ? 4 : cls == '4' ? 2 : 1; }

// From the first step to the last at which a register's value is needed; what the prologue leaves
// is needed by blocks to come.
std::vector<Interval> intervals(const Lowered& lowered, const std::vector<uint32_t>& number,
                                const Flow& flow, const Liveness& live, uint32_t next) {
  std::vector<Interval> interval(next);
  for (uint32_t k = 0; k < lowered.steps.size(); ++k) {
    const Step& s = lowered.steps[k];
    for (uint32_t r : s.sources) interval[number[r]].cover(k);
    for (uint32_t r : s.destinations) interval[number[r]].cover(k);
    if (s.guard >= 0) interval[number[size_t(s.guard)]].cover(k);
  }
  for (size_t b = 0; b < flow.successors.size(); ++b) {
    live.in[b].for_each(
        [&](uint32_t bit) { interval[number[live.registers[bit]]].cover(flow.begin[b]); });
    live.out[b].for_each(
        [&](uint32_t bit) { interval[number[live.registers[bit]]].cover(flow.begin[b + 1] - 1); });
  }
  for (uint32_t k = 0; k < lowered.prologue; ++k) {
    for (uint32_t r : lowered.steps[k].destinations) {
      Interval& i = interval[number[r]];
      if (i.last >= lowered.prologue) i.cover(uint32_t(lowered.steps.size() - 1));
    }
  }
  return interval;
}

}  // namespace

Result<RegisterFile> allocate_registers(const Lowered& lowered) {
  const size_t count = lowered.registers.size();
  RegisterFile file;
  file.place.assign(count, 0);
  if (lowered.steps.empty()) return file;
  // Registers that live and die get numbers from 1; pinned ones 0.
  std::vector<uint32_t> number(count, 0);
  std::vector<bool> followed(count);
  uint32_t next = 1;
  for (size_t r = 0; r < count; ++r) {
    const VirtualRegister& v = lowered.registers[r];
    if (v.constant || v.special >= 0) continue;
    number[r] = next++;
    followed[r] = true;
  }
  const Flow flow = flow_of(lowered);
  const Liveness live_blocks = liveness_of(lowered, flow, followed);

  std::vector<uint32_t> owner(next);
  for (size_t r = 0; r < count; ++r) owner[number[r]] = uint32_t(r);
  const std::vector<Interval> interval = intervals(lowered, number, flow, live_blocks, next);
  live_blocks.in[0].for_each(
      [&](uint32_t bit) { file.live_at_entry.push_back(live_blocks.registers[bit]); });

  Places slots, predicates;
  uint32_t pinned = 0;
  for (size_t r = 0; r < count; ++r) {
    if (number[r]) continue;
    const uint32_t width = slots_of(lowered.registers[r].cls);
    file.place[r] = uint16_t(slots.take(width));
    pinned += width;
    if (slots.top() > 0xffff) break;
  }
  std::vector<uint32_t> order;
  for (uint32_t n = 1; n < next; ++n) {
    if (interval[n].first != ~0u) order.push_back(n);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return interval[a].first != interval[b].first ? interval[a].first < interval[b].first : a < b;
  });
  using Ending = std::pair<uint32_t, uint32_t>;  // last use, number
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
  uint32_t live = 0;
  for (uint32_t n : order) {
    while (!active.empty() && active.top().first < interval[n].first) {
      const uint32_t r = owner[active.top().second];
      active.pop();
      const char cls = lowered.registers[r].cls;
      (cls == 'p' ? predicates : slots).give(slots_of(cls), file.place[r]);
      if (cls != 'p') live -= slots_of(cls);
    }
    const uint32_t r = owner[n];
    const char cls = lowered.registers[r].cls;
    const uint32_t place = (cls == 'p' ? predicates : slots).take(slots_of(cls));
    if (place > 0x7fff) {
      return unsupported("the kernel needs more than 32767 registers at once");
    }
    file.place[r] = uint16_t(place);
    active.emplace(interval[n].last, n);
    if (cls != 'p') live += slots_of(cls);
    file.registers = std::max(file.registers, live);
  }
  if (slots.top() > 0xffff) return unsupported("the kernel needs more than 65535 register slots");
  file.slots = slots.top();
  file.predicates = predicates.top();
  return file;
}

}  // namespace kv::simt
