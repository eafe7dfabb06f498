#include "harness/simt/exec/lower/allocate.h"

#include <algorithm>
#include <queue>

namespace kv::simt {
namespace {

class BitRow {
 public:
  explicit BitRow(size_t bits) : words_((bits + 63) / 64) {}
  bool get(uint32_t k) const { return words_[k / 64] >> (k % 64) & 1; }
  void set(uint32_t k) { words_[k / 64] |= uint64_t{1} << (k % 64); }
  /// this |= other; this |= other & ~mask.
  void add(const BitRow& other) {
    for (size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
  }
  bool add_without(const BitRow& other, const BitRow& mask) {
    uint64_t changed = 0;
    for (size_t k = 0; k < words_.size(); ++k) {
      const uint64_t now = words_[k] | (other.words_[k] & ~mask.words_[k]);
      changed |= now ^ words_[k];
      words_[k] = now;
    }
    return changed != 0;
  }
  template <class F>
  void for_each(F f) const {
    for (size_t k = 0; k < words_.size(); ++k) {
      for (uint64_t w = words_[k]; w; w &= w - 1) f(uint32_t(k * 64 + size_t(__builtin_ctzll(w))));
    }
  }

 private:
  std::vector<uint64_t> words_;
};

struct Flow {
  std::vector<uint32_t> begin;  // of each block; one past the last at the end
  std::vector<std::vector<uint32_t>> successors;
  std::vector<BitRow> in, out;
};

Flow flow_of(const Lowered& lowered, size_t width) {
  Flow flow;
  flow.begin = block_starts(lowered);
  const size_t blocks = flow.begin.size();
  flow.begin.push_back(uint32_t(lowered.steps.size()));
  std::vector<uint32_t> block_of(lowered.steps.size());
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t k = flow.begin[b]; k < flow.begin[b + 1]; ++k) block_of[k] = b;
  }
  flow.successors.resize(blocks);
  for (uint32_t b = 0; b < blocks; ++b) {
    const Step& last = lowered.steps[flow.begin[b + 1] - 1];
    if (last.target >= 0) flow.successors[b].push_back(block_of[size_t(last.target)]);
    if ((!last.control || last.falls_through) && b + 1 < blocks)
      flow.successors[b].push_back(b + 1);
  }
  flow.in.assign(blocks, BitRow(width));
  flow.out = flow.in;
  return flow;
}

void solve(const Lowered& lowered, const std::vector<uint32_t>& number, Flow* flow, size_t width) {
  const size_t blocks = flow->successors.size();
  std::vector<BitRow> kill(blocks, BitRow(width));
  for (size_t b = 0; b < blocks; ++b) {
    const auto use = [&](uint32_t r) {
      if (number[r] && !kill[b].get(number[r])) flow->in[b].set(number[r]);
    };
    for (uint32_t k = flow->begin[b]; k < flow->begin[b + 1]; ++k) {
      const Step& s = lowered.steps[k];
      for (uint32_t r : s.sources) use(r);
      if (s.guard >= 0) use(uint32_t(s.guard));
      for (uint32_t r : s.destinations) {
        if (s.guard < 0 && number[r]) kill[b].set(number[r]);
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks; b-- > 0;) {
      for (uint32_t next : flow->successors[b]) flow->out[b].add(flow->in[next]);
      changed |= flow->in[b].add_without(flow->out[b], kill[b]);
    }
  }
}

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

// From the first step to the last at which a register's value is needed.
std::vector<Interval> intervals(const Lowered& lowered, const std::vector<uint32_t>& number,
                                const Flow& flow, uint32_t next) {
  std::vector<Interval> interval(next);
  for (uint32_t k = 0; k < lowered.steps.size(); ++k) {
    const Step& s = lowered.steps[k];
    for (uint32_t r : s.sources) interval[number[r]].cover(k);
    for (uint32_t r : s.destinations) interval[number[r]].cover(k);
    if (s.guard >= 0) interval[number[size_t(s.guard)]].cover(k);
  }
  for (size_t b = 0; b < flow.successors.size(); ++b) {
    flow.in[b].for_each([&](uint32_t n) { interval[n].cover(flow.begin[b]); });
    flow.out[b].for_each([&](uint32_t n) { interval[n].cover(flow.begin[b + 1] - 1); });
  }
  return interval;
}

}  // namespace

std::vector<uint32_t> block_starts(const Lowered& lowered) {
  std::vector<bool> leads(lowered.steps.size() + 1);
  leads[0] = true;
  for (size_t k = 0; k < lowered.steps.size(); ++k) {
    const Step& s = lowered.steps[k];
    if (s.target >= 0) leads[size_t(s.target)] = true;
    if (s.control) leads[k + 1] = true;
  }
  std::vector<uint32_t> starts;
  for (size_t k = 0; k < lowered.steps.size(); ++k) {
    if (leads[k]) starts.push_back(uint32_t(k));
  }
  return starts;
}

Result<RegisterFile> allocate_registers(const Lowered& lowered) {
  const size_t count = lowered.registers.size();
  RegisterFile file;
  file.place.assign(count, 0);
  if (lowered.steps.empty()) return file;
  // Registers that live and die get numbers from 1; pinned ones 0.
  std::vector<uint32_t> number(count, 0);
  uint32_t next = 1;
  for (size_t r = 0; r < count; ++r) {
    const VirtualRegister& v = lowered.registers[r];
    if (!v.constant && v.special < 0) number[r] = next++;
  }
  Flow flow = flow_of(lowered, next);
  solve(lowered, number, &flow, next);

  std::vector<uint32_t> owner(next);
  for (size_t r = 0; r < count; ++r) owner[number[r]] = uint32_t(r);
  const std::vector<Interval> interval = intervals(lowered, number, flow, next);
  flow.in[0].for_each([&](uint32_t n) {
    if (n) file.live_at_entry.push_back(owner[n]);
  });

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
