// What has changed when an engine has answered that a call succeeded.
#include <algorithm>

#include "harness/core/check.h"
#include "harness/history/model.h"

namespace kv {
namespace {

void copy_content(const ModelRequest& from, ModelRequest& to) {
  to.side_input = from.side_input;
  to.slots_max = from.slots_max;
  to.position_offset = from.position_offset;
  to.stream = from.stream;
  to.slots = from.slots;
  to.draft = from.draft;
  to.settled = from.settled;
  to.tree_begin = from.tree_begin;
}

// What comes next is made up for this request alone: sharers diverge.
void part(ModelRequest& r) {
  r.stream.resize(r.slots.size());
  r.scheduled = r.slots.size();
}

template <class T>
void erase_range(std::vector<T>& items, uint64_t begin, uint64_t end) {
  begin = std::min<uint64_t>(begin, items.size());
  end = std::min<uint64_t>(end, items.size());
  items.erase(items.begin() + static_cast<ptrdiff_t>(begin),
              items.begin() + static_cast<ptrdiff_t>(end));
}

void keep(std::vector<StoredToken>& slots, uint64_t length) {
  if (slots.size() > length) slots.resize(length);
}

}  // namespace

void Model::apply_call(const call::Admit& admit, const Planned&, const Answer& answer) {
  ModelRequest r{.request = admit.request,
                 .owner = admit.owner,
                 .handle = answer.handle,
                 .side_input = admit.side_input,
                 .slots_max = admit.slots_max,
                 .position_offset = admit.position_offset,
                 .stream = admit.tokens};
  const uint64_t found = std::min<uint64_t>(answer.length, admit.tokens.size());
  for (uint64_t i = 0; i < found; ++i) {
    r.slots.push_back(next_stored(r, r.slots, admit.tokens[i], case_.data.seed));
  }
  r.settled = r.slots.size();
  requests_[admit.request] = std::move(r);
  touch_all(requests_[admit.request]);
}

void Model::apply_call(const call::Complete& complete, const Planned&, const Answer&) {
  end_steps(complete.step);
}

void Model::apply_call(const call::Fork& fork, const Planned&, const Answer& answer) {
  const ModelRequest& parent = requests_.at(fork.parent);
  ModelRequest child{.request = fork.child, .owner = parent.owner, .handle = answer.handle};
  copy_content(parent, child);
  part(child);
  requests_[fork.child] = std::move(child);
  touch_all(requests_[fork.child]);
}

void Model::apply_call(const call::Reorder& reorder, const Planned&, const Answer&) {
  std::vector<ModelRequest> before;
  for (const RequestId source : reorder.sources) before.push_back(requests_.at(source));
  for (size_t i = 0; i < reorder.beams.size(); ++i) {
    ModelRequest& beam = requests_.at(reorder.beams[i]);
    copy_content(before[i], beam);
    part(beam);
    touch_all(beam);
  }
}

void Model::apply_call(const call::Truncate& truncate, const Planned&, const Answer&) {
  ModelRequest& r = requests_.at(truncate.request);
  keep(r.slots, truncate.length);
  keep(r.draft, truncate.length);
  r.tree_begin = std::min<uint64_t>(r.tree_begin, r.slots.size());
  part(r);
  r.settled = r.slots.size();
  touch(r.request, truncate.length - std::min<uint64_t>(truncate.length, 1), truncate.length);
}

// Where an engine turns the K behind a gap to the positions of its new slots.
void Model::turn_back(std::vector<StoredToken>& slots, const call::Shift& shift, bool draft) {
  for (size_t i = shift.end; i < slots.size(); ++i) {
    const auto back = static_cast<int64_t>(shift.end - shift.begin);
    turned_.push_back({.before = slots[i], .draft = draft, .back = back});
    slots[i].turned_back += back;
  }
}

void Model::apply_call(const call::Shift& shift, const Planned&, const Answer&) {
  ModelRequest& r = requests_.at(shift.request);
  const bool was_tree = has_branches(r);
  const bool turns = options_.shift_turns && case_.shape.rope.pairing != RopePairing::kNone &&
                     !(was_tree && shift.begin >= r.tree_begin);
  if (turns) turn_back(r.slots, shift, false), turn_back(r.draft, shift, true);
  erase_range(r.slots, shift.begin, shift.end);
  erase_range(r.draft, shift.begin, shift.end);
  erase_range(r.stream, shift.begin, shift.end);
  // A gap in front of a tree, or of anything, is no branch.
  if (!(shift.begin >= r.tree_begin && was_tree)) r.tree_begin = r.slots.size();
  r.scheduled -= std::min(r.scheduled, shift.end - shift.begin);
  r.scheduled = std::max<uint64_t>(r.scheduled, r.slots.size());
  r.settled = r.slots.size();
  touch_all(r);
}

void Model::apply_call(const call::Cancel& cancel, const Planned&, const Answer&) {
  forget(cancel.request);
}
void Model::apply_call(const call::Finish& finish, const Planned&, const Answer&) {
  forget(finish.request);
}

void Model::apply_call(const call::Preempt& preempt, const Planned&, const Answer&) {
  ModelRequest& r = requests_.at(preempt.request);
  r.life = preempt.swap ? Life::kSwapped : Life::kPreempted;
  r.draft.clear();
  if (preempt.swap) return;
  r.scheduled = std::max<uint64_t>(r.scheduled, r.slots.size());
  r.slots.clear();
  r.settled = 0;
}

void Model::apply_call(const call::Resume& resume, const Planned&, const Answer& answer) {
  ModelRequest& r = requests_.at(resume.request);
  if (r.life == Life::kPreempted) {
    const uint64_t found = std::min<uint64_t>(answer.length, r.stream.size());
    for (uint64_t i = 0; i < found; ++i) {
      r.slots.push_back(next_stored(r, r.slots, r.stream[i], case_.data.seed));
    }
    r.settled = r.slots.size();
  }
  r.life = Life::kActive;
  touch_all(r);
}

// Pages go elsewhere: everything that is live may have moved.
void Model::apply_call(const call::Defrag&, const Planned&, const Answer&) {
  for (const auto& [id, r] : requests_) {
    if (r.life == Life::kActive) touch_all(r);
  }
}

void Model::apply_call(const call::Save& save, const Planned&, const Answer& answer) {
  saved_[save.request] = {answer.saved, requests_.at(save.request)};
}

void Model::apply_call(const call::Restore& restore, const Planned& planned, const Answer& answer) {
  KV_CHECK(planned.saved.has_value(), "a restore of nothing must be refused");
  const ModelRequest& saved = saved_.at(*planned.saved).content;
  ModelRequest r{
      .request = restore.admission.request, .owner = saved.owner, .handle = answer.handle};
  copy_content(saved, r);
  r.draft.clear();
  part(r);
  r.settled = r.slots.size();
  requests_[r.request] = std::move(r);
  touch_all(requests_[restore.admission.request]);
}

void Model::apply_call(const call::FailAllocation& fail, const Planned&, const Answer&) {
  failing_ = fail.nth > 0;
}

}  // namespace kv
