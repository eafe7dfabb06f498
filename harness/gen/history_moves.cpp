// Operations that share, move, give up and bring back what requests hold.
#include <algorithm>

#include "harness/gen/history_writer.h"
#include "harness/gen/lengths.h"

namespace kv {

void HistoryWriter::fork() {
  const RequestId parent = mostly_active();
  const RequestId child = choices_.one_in(16) ? any_id() : new_id();
  case_.ops.emplace_back(op::Fork{parent, child});
  const Life* life = find(parent);
  if (life == nullptr || find(child) != nullptr || !has_room(life->slots_max)) return;
  Life copy = *life;
  copy.request = child;
  copy.prompt_left = 0;
  lives_.push_back(copy);
}

// Beams of one family, and now and then anybody: permutations with repeats and drops.
void HistoryWriter::reorder() {
  const Life* first = some(true);
  if (first == nullptr) return;
  const bool mixed = choices_.one_in(4);
  op::Reorder reorder;
  for (const Life& life : lives_) {
    const bool fits = life.active && (mixed || life.family == first->family);
    if (fits && reorder.beams.size() < 4) reorder.beams.push_back(life.request);
  }
  const size_t count = reorder.beams.size();
  const uint64_t rotation = choices_.below(count);
  const bool permutes = choices_.one_in(2);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t from = permutes ? (i + rotation) % count : choices_.below(count);
    reorder.sources.push_back(reorder.beams[from]);
  }
  std::vector<Life> before;
  for (const RequestId source : reorder.sources) before.push_back(*find(source));
  for (size_t i = 0; i < count; ++i) {
    Life& beam = *find(reorder.beams[i]);
    beam.length = before[i].length;
    beam.slots_max = before[i].slots_max;
    beam.prompt_left = 0;
  }
  case_.ops.emplace_back(std::move(reorder));
}

// To a page edge, one off, nothing at all, or beyond the length.
void HistoryWriter::truncate() {
  const RequestId request = mostly_active();
  Life* life = find(request);
  const uint64_t length = life == nullptr ? 4 : life->length;
  uint64_t to = length == 0 ? 0 : draw_length(choices_, case_.pool.page_slots, length);
  if (choices_.one_in(8)) to = choices_.pick<uint64_t>({0, length, length + 1});
  case_.ops.emplace_back(op::Truncate{request, to});
  if (life == nullptr || to > life->length) return;
  life->length = to;
  life->prompt_left = 0;
}

void HistoryWriter::shift() {
  const RequestId request = mostly_active();
  Life* life = find(request);
  const uint64_t length = life == nullptr ? 8 : life->length;
  const uint64_t begin = choices_.below(length + 1);
  const uint64_t most = length - begin;
  const uint64_t end = begin + (most == 0 ? 0 : draw_length(choices_, case_.pool.page_slots, most));
  case_.ops.emplace_back(op::Shift{request, begin, end});
  if (life != nullptr) life->length -= std::min(life->length, end - begin);
}

void HistoryWriter::leave() {
  // Cancel is lawful in any state, finish in one.
  const bool cancels = choices_.one_in(2);
  RequestId request = choices_.one_in(8) ? any_id() : mostly_active();
  if (cancels && choices_.one_in(4)) {
    if (const Life* life = some(false)) request = life->request;
  }
  if (cancels) {
    case_.ops.emplace_back(op::Cancel{request});
    remove(request);
    return;
  }
  case_.ops.emplace_back(op::Finish{request});
  if (const Life* life = find(request); life != nullptr && life->active) remove(request);
}

void HistoryWriter::preempt() {
  const RequestId request = mostly_active();
  case_.ops.emplace_back(op::Preempt{request, choices_.one_in(2)});
  if (Life* life = find(request)) life->active = false;
}

void HistoryWriter::resume() {
  Life* life = some(false);
  const RequestId request = life == nullptr || choices_.one_in(16) ? any_id() : life->request;
  case_.ops.emplace_back(op::Resume{request});
  Life* resumed = find(request);
  if (resumed != nullptr && has_room(resumed->slots_max)) resumed->active = true;
}

void HistoryWriter::evict() {
  case_.ops.emplace_back(op::Evict{choices_.pick<uint32_t>({1, 2, 3, case_.pool.page_count})});
}

void HistoryWriter::defrag() { case_.ops.emplace_back(op::Defrag{}); }

void HistoryWriter::save() {
  const RequestId request = mostly_active();
  case_.ops.emplace_back(op::Save{request});
  if (const Life* life = find(request)) saved_.push_back(*life);
}

void HistoryWriter::restore() {
  if (saved_.empty()) return save();
  Life life = saved_[choices_.below(saved_.size())];
  const RequestId saved = life.request;
  const RequestId request = choices_.one_in(16) ? any_id() : new_id();
  case_.ops.emplace_back(op::Restore{.request = request, .saved = saved});
  if (find(request) != nullptr || !has_room(life.slots_max)) return;
  life.request = life.family = request;
  life.prompt_left = 0;
  life.active = true;
  lives_.push_back(life);
}

void HistoryWriter::fail_allocation() {
  case_.ops.emplace_back(op::FailAllocation{choices_.pick<uint64_t>({1, 1, 2, 3, 7})});
}

void HistoryWriter::hostile() {
  using Kind = op::Hostile::Kind;
  const Kind kind = choices_.pick({Kind::kLengthPlusOne, Kind::kLengthMinusOne,
                                   Kind::kReleasedHandle, Kind::kForeignHandle, Kind::kWrongDtype,
                                   Kind::kPastLimit, Kind::kCorruptRestore, Kind::kTruncatedRestore,
                                   Kind::kDuplicateRequest, Kind::kStepInFlightTwice});
  const bool restores = kind == Kind::kCorruptRestore || kind == Kind::kTruncatedRestore;
  const RequestId request = restores && !saved_.empty()     ? saved_.back().request
                            : kind == Kind::kReleasedHandle ? any_id()
                                                            : mostly_active();
  case_.ops.emplace_back(op::Hostile{.kind = kind, .request = request});
}

}  // namespace kv
