#include "harness/gen/history_writer.h"

#include <algorithm>

#include "harness/gen/lengths.h"

namespace kv {

HistoryWriter::HistoryWriter(ChoiceSource& choices, const HistoryScope& scope,
                             const HistoryAxes& axes, Case& c)
    : choices_(choices), scope_(scope), axes_(axes), case_(c) {
  const auto offer = [this](bool offered, uint32_t weight, Write write) {
    if (offered) writes_.push_back({weight, write});
  };
  offer(true, 24, &HistoryWriter::step);
  offer(true, 10, &HistoryWriter::admit);
  offer(true, 7, &HistoryWriter::leave);
  offer(true, 2, &HistoryWriter::append);
  offer(true, 5, &HistoryWriter::complete);
  offer(axes.speculation, 8, &HistoryWriter::speculate);
  offer(axes.drafts, 5, &HistoryWriter::draft_step);
  offer(axes.forks, 5, &HistoryWriter::fork);
  offer(axes.beams, 4, &HistoryWriter::reorder);
  offer(true, 3, &HistoryWriter::truncate);
  offer(axes.shifts, 3, &HistoryWriter::shift);
  offer(axes.preemption, 4, &HistoryWriter::preempt);
  offer(axes.preemption, 5, &HistoryWriter::resume);
  offer(axes.eviction, 3, &HistoryWriter::evict);
  offer(axes.defrag, 3, &HistoryWriter::defrag);
  offer(axes.saving, 3, &HistoryWriter::save);
  offer(axes.saving, 3, &HistoryWriter::restore);
  offer(axes.failures, 2, &HistoryWriter::fail_allocation);
  offer(axes.hostile, 4, &HistoryWriter::hostile);
  for (const Weighted& w : writes_) weight_ += w.weight;
}

void HistoryWriter::write_one() {
  const size_t before = case_.ops.size();
  uint64_t at = choices_.below(weight_);
  size_t i = 0;
  while (at >= writes_[i].weight) at -= writes_[i++].weight;
  (this->*writes_[i].write)();
  if (case_.ops.size() == before) admit();
}

// ---------------------------------------------------------------- who

bool HistoryWriter::has_room(uint64_t slots_max) const {
  const EngineLevel& e = *case_.engine;
  const uint64_t page = case_.pool.page_slots, groups = std::max<size_t>(1, e.groups.size());
  const auto worst = [&](uint64_t slots) { return (slots + page - 1) / page * groups; };
  uint64_t pages = worst(slots_max), active = 0;
  for (const Life& life : lives_) {
    if (life.active) pages += worst(life.slots_max);
    active += life.active;
  }
  const auto budget = static_cast<uint64_t>(case_.pool.overcommit * case_.pool.page_count);
  return pages <= budget && active < e.batch_slots && lives_.size() < e.request_max;
}

RequestId HistoryWriter::new_id() {
  // Ids of requests that are gone are used again now and then.
  if (axes_.reuse && ids_ > 0 && choices_.one_in(4)) {
    const RequestId old(static_cast<uint32_t>(choices_.below(ids_)));
    if (find(old) == nullptr) return old;
  }
  return RequestId(ids_++);
}

RequestId HistoryWriter::any_id() {
  return RequestId(static_cast<uint32_t>(choices_.below(ids_ + 1)));
}

HistoryWriter::Life* HistoryWriter::some(bool active) {
  const uint64_t start = lives_.empty() ? 0 : choices_.below(lives_.size());
  for (size_t i = 0; i < lives_.size(); ++i) {
    Life& life = lives_[(start + i) % lives_.size()];
    if (life.active == active) return &life;
  }
  return nullptr;
}

HistoryWriter::Life* HistoryWriter::find(RequestId request) {
  const auto found = std::find_if(lives_.begin(), lives_.end(),
                                  [&](const Life& life) { return life.request == request; });
  return found == lives_.end() ? nullptr : &*found;
}

RequestId HistoryWriter::mostly_active() {
  Life* life = some(true);
  return life == nullptr || choices_.one_in(16) ? any_id() : life->request;
}

void HistoryWriter::remove(RequestId request) {
  std::erase_if(lives_, [&](const Life& life) { return life.request == request; });
}

// ---------------------------------------------------------------- tokens

// At a page edge, one off, or anywhere.
uint64_t HistoryWriter::draw_tokens(uint64_t most) {
  if (most <= 1) return most;
  return draw_length(choices_, case_.pool.page_slots, most);
}

void HistoryWriter::admit() {
  const EngineLevel& e = *case_.engine;
  const uint64_t prompt = draw_tokens(e.context_limit), room = e.context_limit - prompt;
  // Room to decode, none at all, or as much as there is.
  const uint64_t slots_max =
      std::max<uint64_t>(1, prompt + choices_.pick<uint64_t>({room, room / 2, 8, room / 4, 0}));
  op::Admit admit{.prompt_tokens = prompt,
                  .slots_max = std::min<uint64_t>(slots_max, e.context_limit)};
  // What finds no room proves little; now and then is enough.
  if (!lives_.empty() && !has_room(admit.slots_max) && !choices_.one_in(8)) return leave();
  admit.request = new_id();
  Identity identity;
  if (axes_.side_inputs) identity.side_input = choices_.below(3);
  if (axes_.offsets) {
    identity.position_offset = choices_.pick<int64_t>({0, 0, 1, 1000, (int64_t{1} << 31) - 8});
  }
  if (axes_.sharing && ids_ > 0 && !choices_.one_in(3)) {
    admit.prefix_of = any_id();
    admit.prefix_tokens =
        choices_.one_in(2) ? prompt : draw_part(choices_, case_.pool.page_slots, prompt);
    const bool known = admit.prefix_of->value < identities_.size();
    if (known && !choices_.one_in(4)) identity = identities_[admit.prefix_of->value];
  }
  admit.side_input = identity.side_input;
  admit.position_offset = identity.position_offset;
  if (axes_.owners) admit.owner = choices_.below(2);
  case_.ops.emplace_back(admit);
  if (identities_.size() <= admit.request.value) identities_.resize(admit.request.value + 1);
  identities_[admit.request.value] = identity;
  if (!has_room(admit.slots_max)) return;  // it will hardly be there
  lives_.push_back({.request = admit.request,
                    .prompt_left = prompt,
                    .slots_max = admit.slots_max,
                    .owner = admit.owner,
                    .family = admit.request});
}

op::StepRow HistoryWriter::row(Life& life) {
  op::StepRow row{.request = life.request};
  const uint64_t room = life.slots_max - std::min(life.slots_max, life.length);
  const uint64_t wanted = life.prompt_left > 0
                              ? draw_part(choices_, case_.pool.page_slots, life.prompt_left)
                              : choices_.pick<uint64_t>({1, 1, 1, 2, case_.pool.page_slots});
  // Past the limit now and then: it has to be refused.
  const uint64_t append = choices_.one_in(32) ? wanted : std::min(wanted, room);
  row.append = static_cast<uint32_t>(append);
  if (scope_.attends) row.queries = choices_.one_in(8) ? 0 : std::max(1u, row.append);
  return row;
}

void HistoryWriter::step() {
  op::Step step;
  const uint64_t start = lives_.empty() ? 0 : choices_.below(lives_.size());
  const uint64_t most = choices_.between(1, 4);
  for (size_t i = 0; i < lives_.size() && step.rows.size() < most; ++i) {
    Life& life = lives_[(start + i) % lives_.size()];
    if (!life.active && !choices_.one_in(32)) continue;
    op::StepRow r = row(life);
    if (r.append == 0 && r.queries == 0) continue;
    if (case_.shape.layers > 1 && choices_.one_in(24)) {
      r.cancel_before_layer = static_cast<uint32_t>(choices_.between(1, case_.shape.layers - 1));
    }
    life.length += r.append;
    life.prompt_left -= std::min<uint64_t>(life.prompt_left, r.append);
    step.rows.push_back(r);
  }
  if (step.rows.empty()) return;
  for (const op::StepRow& r : step.rows) {
    if (r.cancel_before_layer > 0) remove(r.request);
  }
  if (axes_.padding) {
    step.padded_layout = choices_.one_in(2);
    step.padded_left = step.padded_layout && choices_.one_in(2);
  }
  case_.ops.emplace_back(std::move(step));
  ++in_flight_;
}

// Verify k drafted tokens, of which a stay, for every a from 0 to k.
void HistoryWriter::speculate() {
  Life* life = some(true);
  if (life == nullptr || life->prompt_left > 0) return step();
  const uint64_t room = life->slots_max - std::min(life->slots_max, life->length);
  const uint64_t drafted = std::min<uint64_t>(choices_.between(1, case_.pool.page_slots + 1), room);
  if (drafted == 0) return step();
  const auto k = static_cast<uint32_t>(drafted - (choices_.one_in(4) ? 0 : 1));
  const auto append = static_cast<uint32_t>(drafted);
  op::StepRow row{.request = life->request, .append = append, .speculative = k};
  if (scope_.attends) row.queries = append;
  if (choices_.one_in(3)) return verify_tree(*life, row);
  case_.ops.emplace_back(op::Step{.rows = {row}});
  ++in_flight_;
  life->length += append;
  if (choices_.one_in(3)) complete();
  const uint64_t accepted = choices_.below(k + 1);
  if (accepted == k && choices_.one_in(2)) return;  // all of them: nothing is taken back
  life->length -= k - accepted;
  case_.ops.emplace_back(op::Truncate{life->request, life->length});
}

// Verify a tree of guesses, keep one path of it: what lies behind the path is cut, then the gaps in
// it are closed, the last one first. Now and then another operation comes too early.
void HistoryWriter::verify_tree(Life& life, op::StepRow row) {
  row.speculative = row.append;
  for (uint32_t i = 0; i < row.append; ++i) {
    const int64_t last = int64_t{i} - 1;
    const int64_t parent = static_cast<int64_t>(choices_.below(uint64_t{i} + 1)) - 1;
    row.tree_parents.push_back(static_cast<int32_t>(choices_.one_in(2) ? last : parent));
  }
  const uint64_t base = life.length;
  const RequestId request = row.request;
  std::vector<int32_t> path;
  for (auto i = static_cast<int32_t>(choices_.below(row.append)); i >= 0;
       i = row.tree_parents[static_cast<size_t>(i)]) {
    path.push_back(i);
  }
  case_.ops.emplace_back(op::Step{.rows = {row}});
  ++in_flight_;
  if (choices_.one_in(3)) complete();
  if (choices_.one_in(8)) {
    fork();
    preempt();
  }
  if (find(request) == nullptr) return;
  const auto slot = [base](int64_t index) { return base + static_cast<uint64_t>(index); };
  case_.ops.emplace_back(op::Truncate{request, slot(path.front() + 1)});
  for (size_t i = 0; i < path.size(); ++i) {
    const int64_t before = i + 1 < path.size() ? path[i + 1] : -1;
    if (before + 1 < path[i]) {
      case_.ops.emplace_back(op::Shift{request, slot(before + 1), slot(path[i])});
    }
  }
  if (Life* left = find(request)) left->length = base + path.size();
}

void HistoryWriter::draft_step() {
  Life* life = some(true);
  if (life == nullptr) return;
  const uint64_t room = life->slots_max - std::min(life->slots_max, life->length);
  const auto append = static_cast<uint32_t>(std::min<uint64_t>(choices_.between(1, 6), room));
  if (append == 0) return;
  op::StepRow row{.request = life->request, .append = append};
  if (scope_.attends) row.queries = 1;
  case_.ops.emplace_back(op::Step{.rows = {row}, .draft = true});
}

void HistoryWriter::append() {
  const RequestId request = mostly_active();
  const uint64_t tokens = draw_tokens(2 * case_.pool.page_slots);
  case_.ops.emplace_back(op::Append{request, tokens});
  if (Life* life = find(request)) {
    life->prompt_left +=
        std::min(tokens, life->slots_max - std::min(life->slots_max, life->length));
  }
}

void HistoryWriter::complete() {
  case_.ops.emplace_back(op::Complete{choices_.one_in(4) ? choices_.below(3) : 0});
  in_flight_ = 0;
}

}  // namespace kv
