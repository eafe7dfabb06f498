#include <algorithm>
#include <cstring>

#include "harness/history/testing/plain_engine.h"

namespace kv {

Answer PlainEngine::act(const call::Admit& admit) {
  if (find(admit.request) != nullptr) return refuse("the request exists already");
  if (admit.slots_max > case_.engine->context_limit || admit.tokens.size() > admit.slots_max) {
    return refuse("past the limit");
  }
  const int32_t slot = free_batch_slot();
  if (slot < 0 || requests_.size() >= case_.engine->request_max) return no_room();
  Request r{.admission = admit, .handle = ++handles_, .batch_slot = slot};
  if (fault_ == Fault::kForgetOffset) r.admission.position_offset = 0;
  if (!fits_budget(worst_pages(r))) return no_room();
  r.target.tables.resize(target_.groups);
  r.draft.tables.resize(1);
  return admitted(requests_[admit.request] = std::move(r));
}

namespace {

bool is_chain(const std::vector<int32_t>& parents) {
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] != static_cast<int32_t>(i) - 1) return false;
  }
  return true;
}

// Where a token stands behind its ancestors alone.
uint64_t depth_of(const call::StepRow& row, size_t token) {
  if (row.tree_parents.empty()) return token;
  uint64_t depth = 0;
  for (int32_t p = row.tree_parents[token]; p >= 0; p = row.tree_parents[p]) ++depth;
  return depth;
}

}  // namespace

bool PlainEngine::has_branches(const Request& r) {
  const auto& slots = r.target.slots;
  for (size_t i = std::max<size_t>(r.tree_begin, 1); i < slots.size(); ++i) {
    if (slots[i].previous != slots[i - 1].history) return true;
  }
  return false;
}

const char* PlainEngine::why_no_row(const call::StepRow& row, bool draft) {
  Request* r = active(row.request);
  if (r == nullptr) return "the request is not active";
  const Side& side = draft ? r->draft : r->target;
  const bool known =
      row.handle == r->handle || (fault_ == Fault::kAcceptOldHandle && row.handle < r->handle);
  if (!known) return "the handle is not the request's";
  if (row.length != side.slots.size()) return "the row appends elsewhere";
  if (row.dtype != case_.shape.kv_dtype) return "the dtype is not the pool's";
  if (row.append > case_.engine->step_tokens_max) return "too many tokens";
  if (has_branches(*r)) return kBranches;
  if (!is_chain(row.tree_parents) && row.speculative < row.append) return "a tree that stays";
  const uint32_t layers = draft ? case_.engine->draft_layers : case_.shape.layers;
  if (row.cancel_before_layer >= std::max(layers, 1u)) return "there is no such layer";
  const bool past = row.length + row.append > r->admission.slots_max;
  if (past && fault_ != Fault::kAcceptPastLimit) return "past the limit";
  return nullptr;
}

Answer PlainEngine::act(const call::Step& step) {
  Cache& cache = step.draft ? draft_ : target_;
  if (step.draft && case_.engine->draft_layers == 0) return refuse("there is no draft model");
  uint64_t needed = 0;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    if (const char* why = why_no_row(step.rows[i], step.draft)) return refuse(why);
    for (size_t j = 0; j < i; ++j) {
      if (step.rows[i].request == step.rows[j].request) return refuse("two rows of one request");
    }
    const Request& r = *find(step.rows[i].request);
    needed +=
        pages_missing(step.draft ? r.draft : r.target, step.rows[i].length + step.rows[i].append) *
        cache.groups;
  }
  const bool room = can_take(cache, needed);
  if (fault_ == Fault::kNoRoom && launched_ > 2) return no_room();
  if (!room && (fault_ != Fault::kHalfStep || step.rows.size() < 2)) return no_room();
  for (const call::StepRow& row : step.rows) {
    Request& r = *find(row.request);
    Side& side = step.draft ? r.draft : r.target;
    const uint64_t missing = pages_missing(side, row.length + row.append) * cache.groups;
    if (!room && cache.free.size() + cache.cached.size() < missing) return no_room();
    std::vector<StoredToken> tokens;
    const size_t skipped = row.histories.size() - row.tokens.size();  // of earlier queries
    for (size_t i = 0; i < row.tokens.size(); ++i) {
      tokens.push_back({.token = row.tokens[i],
                        .history = row.histories[skipped + i],
                        .previous = row.previous[skipped + i],
                        .position = r.admission.position_offset +
                                    static_cast<int64_t>(row.length + depth_of(row, i))});
    }
    if (!step.draft && !row.tree_parents.empty()) r.tree_begin = row.length;
    turns_too_far_ = r.turns_too_far;
    put(cache, side, tokens);
    turns_too_far_ = false;
    if (!step.draft && row.append > 0) r.settled = row.length + row.append - row.speculative;
  }
  flying_.push_back(++launched_);
  if (step.draft) flying_drafts_.push_back(launched_);
  for (const call::StepRow& row : step.rows) {
    if (row.cancel_before_layer > 0) static_cast<void>(act(call::Cancel{row.request}));
  }
  Answer answer{.step = launched_};
  while (flying_.size() > case_.engine->async_depth) end_steps(flying_.front());
  return answer;
}

Answer PlainEngine::act(const call::Complete& complete) {
  if (std::find(flying_.begin(), flying_.end(), complete.step) == flying_.end()) {
    return refuse("the step is not in flight");
  }
  end_steps(complete.step);
  return {};
}

Answer PlainEngine::act(const call::Fork& fork) {
  Request* parent = active(fork.parent);
  if (parent == nullptr) return refuse("the parent is not active");
  if (has_branches(*parent)) return refuse(kBranches);
  if (find(fork.child) != nullptr) return refuse("the child exists already");
  const int32_t slot = free_batch_slot();
  if (slot < 0 || requests_.size() >= case_.engine->request_max) return no_room();
  Request child{.admission = parent->admission,
                .batch_slot = slot,
                .tree_begin = parent->tree_begin,
                .settled = parent->settled};
  if (!fits_budget(worst_pages(child))) return no_room();
  child.target.tables.resize(target_.groups);
  child.draft.tables.resize(1);
  if (fault_ == Fault::kWriteSharedTail) {
    child.target = parent->target;
    for (const auto& table : child.target.tables) {
      for (const uint32_t page : table) ++target_.references[page];
    }
  } else {
    const bool room = can_take(draft_, pages_missing(child.draft, parent->draft.slots.size())) &&
                      can_take(target_, pages_missing(child.target, parent->target.slots.size()) *
                                            target_.groups);
    if (!room) return no_room();
    put(target_, child.target, parent->target.slots);
    put(draft_, child.draft, parent->draft.slots);
  }
  if (fault_ == Fault::kScaleOfFirstPage && child.target.slots.size() % case_.pool.page_slots > 0) {
    const uint32_t first_page = child.target.tables[0][0];
    for (PlainCell& cell : last_page(target_, child.target, 0)) {
      cell.scale_history = target_.cells[first_page][0].scale_history;
    }
  }
  const auto& pages = child.target.tables[0];
  if (fault_ == Fault::kCountTooHigh && !pages.empty()) ++target_.references[pages[0]];
  child.handle = ++handles_;
  return admitted(requests_[fork.child] = std::move(child));
}

// The contents change places; repeats are copied after the dropped ones are gone.
Answer PlainEngine::act(const call::Reorder& reorder) {
  for (size_t i = 0; i < reorder.beams.size(); ++i) {
    const Request* r = active(reorder.beams[i]);
    if (r == nullptr) return refuse("a beam is not active");
    if (has_branches(*r)) return refuse(kBranches);
    if (r->admission.owner != find(reorder.beams[0])->admission.owner) return refuse("two owners");
    for (size_t j = 0; j < i; ++j) {
      if (reorder.beams[i] == reorder.beams[j]) return refuse("a beam occurs twice");
    }
    if (std::find(reorder.beams.begin(), reorder.beams.end(), reorder.sources[i]) ==
        reorder.beams.end()) {
      return refuse("a source is no beam");
    }
  }
  if (fault_ == Fault::kReorderNothing) return {};
  uint64_t more = 0, less = 0;
  std::vector<Request> before;
  for (size_t i = 0; i < reorder.beams.size(); ++i) {
    RequestId source = reorder.sources[i];
    if (fault_ == Fault::kInversePermutation) {
      const auto at = std::find(reorder.sources.begin(), reorder.sources.end(), reorder.beams[i]);
      if (at != reorder.sources.end()) source = reorder.beams[at - reorder.sources.begin()];
    }
    before.push_back(*find(source));
    more += worst_pages(before.back());
    less += worst_pages(*find(reorder.beams[i]));
  }
  if (more > less && !fits_budget(more - less)) return no_room();
  for (const bool draft : {false, true}) {
    uint64_t wanted = 0, held = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const Request& beam = *find(reorder.beams[i]);
      for (const auto& table : (draft ? before[i].draft : before[i].target).tables)
        wanted += table.size();
      for (const auto& table : (draft ? beam.draft : beam.target).tables) held += table.size();
    }
    if (wanted > pages_after(draft ? draft_ : target_, held)) return no_room();
  }
  for (const RequestId beam : reorder.beams) {
    release(target_, find(beam)->target, 0);
    release(draft_, find(beam)->draft, 0);
  }
  for (size_t i = 0; i < reorder.beams.size(); ++i) {
    Request& r = *find(reorder.beams[i]);
    const uint64_t owner = r.admission.owner;
    r.admission = before[i].admission;
    r.admission.owner = owner;
    r.tree_begin = before[i].tree_begin;
    r.settled = before[i].settled;
    for (auto [cache, side, from] : {std::tuple(&target_, &r.target, &before[i].target),
                                     std::tuple(&draft_, &r.draft, &before[i].draft)}) {
      put(*cache, *side, from->slots);
    }
    if (fault_ == Fault::kReorderOnlyTables && !r.target.slots.empty()) {
      const auto other = before[(i + 1) % before.size()].target.slots;
      if (!other.empty()) target_.cells[r.target.tables[0][0]][0].token = other[0];
    }
  }
  return {};
}

Answer PlainEngine::act(const call::Truncate& truncate) {
  Request* r = active(truncate.request);
  if (r == nullptr) return refuse("the request is not active");
  if (truncate.length > r->target.slots.size()) return refuse("it is not that long");
  if (fault_ == Fault::kTruncateNothing) return {};
  r->turns_too_far |= fault_ == Fault::kTurnAfterRollback;
  unpublish(target_, r->target, truncate.length);
  release(target_, r->target, truncate.length);
  r->tree_begin = std::min(r->tree_begin, truncate.length);
  r->settled = truncate.length;
  if (r->draft.slots.size() > truncate.length) release(draft_, r->draft, truncate.length);
  return {};
}

Answer PlainEngine::act(const call::Shift& shift) {
  Request* r = active(shift.request);
  if (r == nullptr) return refuse("the request is not active");
  if (shift.begin >= shift.end || shift.end > r->target.slots.size())
    return refuse("no such range");
  const uint64_t page = case_.pool.page_slots;
  const bool whole_pages = shift.begin % page == 0 && shift.end % page == 0;
  if (case_.shape.kv_scale == KvScale::kPage && !whole_pages &&
      fault_ != Fault::kShiftAcrossScales) {
    return refuse("pages have scales: no part of one can be moved");
  }
  const bool branches = has_branches(*r);
  if (branches && shift.begin < r->tree_begin) return refuse(kBranches);
  for (auto [cache, side] : {std::tuple(&target_, &r->target), std::tuple(&draft_, &r->draft)}) {
    uint64_t held = 0;
    for (const auto& table : side->tables) held += table.size();
    if (held > pages_after(*cache, 0) && !flying_.empty()) return no_room();
  }
  unpublish(target_, r->target, shift.begin);
  for (auto [cache, side] : {std::tuple(&target_, &r->target), std::tuple(&draft_, &r->draft)}) {
    std::vector<StoredToken> slots = side->slots;
    const bool turns = shift_turns() && !(branches && shift.begin >= r->tree_begin);
    if (turns) turn_back(slots, shift.end, static_cast<int64_t>(shift.end - shift.begin));
    const auto begin = std::min<uint64_t>(shift.begin, slots.size());
    const auto end = std::min<uint64_t>(shift.end, slots.size());
    if (fault_ == Fault::kShiftKeepsBytes) {
      slots.resize(slots.size() - (end - begin));
    } else {
      slots.erase(slots.begin() + static_cast<ptrdiff_t>(begin),
                  slots.begin() + static_cast<ptrdiff_t>(end));
    }
    release(*cache, *side, begin);
    put(*cache, *side, {slots.begin() + static_cast<ptrdiff_t>(begin), slots.end()});
  }
  if (!branches) r->tree_begin = r->target.slots.size();
  r->settled = r->target.slots.size();
  return {};
}

Answer PlainEngine::act(const call::Cancel& cancel) {
  Request* r = find(cancel.request);
  if (r == nullptr) return refuse("the request does not exist");
  auto& pages = r->target.tables[0];
  if (fault_ == Fault::kFreeTwice && !pages.empty()) target_.free.push_back(pages[0]);
  if (fault_ == Fault::kLeakOnCancel && !pages.empty()) {
    target_.references[pages.back()] = 0;
    pages.pop_back();
  }
  release(target_, r->target, 0);
  release(draft_, r->draft, 0);
  for (const auto& table : r->host) {
    host_free_.insert(host_free_.end(), table.begin(), table.end());
  }
  if (fault_ == Fault::kStuckBatchSlot) {
    r->life = Life::kPreempted;
    return {};
  }
  const bool leaks = leaked_batch_slots_ + 1 < case_.engine->batch_slots;
  if (fault_ == Fault::kLeakBatchSlot && leaks) ++leaked_batch_slots_;
  requests_.erase(cancel.request);
  return {};
}

Answer PlainEngine::act(const call::Finish& finish) {
  if (active(finish.request) == nullptr) return refuse("the request is not active");
  return act(call::Cancel{finish.request});
}

}  // namespace kv
