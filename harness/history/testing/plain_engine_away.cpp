// Requests that give way and come back, are saved and restored; and pages that nobody holds.
#include <algorithm>
#include <cstring>

#include "harness/history/testing/plain_engine.h"

namespace kv {

Answer PlainEngine::act(const call::Preempt& preempt) {
  Request* r = active(preempt.request);
  if (r == nullptr) return refuse("the request is not active");
  if (has_branches(*r)) return refuse(kBranches);
  if (preempt.swap) {
    uint64_t pages = 0;
    for (const auto& table : r->target.tables) pages += table.size();
    if (pages > host_free_.size()) return no_room();
    for (const auto& table : r->target.tables) {
      auto& host = r->host.emplace_back();
      for (size_t p = 0; p < table.size(); ++p) {
        host.push_back(host_free_.back());
        host_free_.pop_back();
      }
    }
  }
  r->life = preempt.swap ? Life::kSwapped : Life::kPreempted;
  r->batch_slot = -1;
  const std::vector<StoredToken> kept = r->target.slots;
  release(target_, r->target, 0);
  release(draft_, r->draft, 0);
  r->recompute = kept.size();
  if (preempt.swap) r->target.slots = kept;
  if (!preempt.swap) r->settled = 0;
  return {};
}

Answer PlainEngine::act(const call::Resume& resume) {
  Request* r = find(resume.request);
  if (r == nullptr || r->life == Life::kActive) return refuse("nothing to resume");
  const int32_t slot = free_batch_slot();
  std::vector<StoredToken> kept;
  if (r->life == Life::kSwapped) kept = r->target.slots;
  Side empty;
  if (slot < 0 || !fits_budget(worst_pages(*r)) ||
      !can_take(target_, pages_missing(empty, kept.size()) * target_.groups)) {
    return no_room();
  }
  for (const auto& table : r->host) {
    host_free_.insert(host_free_.end(), table.begin(), table.end());
  }
  r->host.clear();
  r->target.slots.clear();
  put(target_, r->target, kept);
  r->turns_too_far |= fault_ == Fault::kTurnAfterResume;
  if (fault_ == Fault::kSwapLosesPage && !kept.empty()) {
    last_page(target_, r->target, 0).assign(case_.pool.page_slots, PlainCell{});
  }
  if (fault_ == Fault::kMoveRoundsAgain && !kept.empty()) {
    for (PlainCell& cell : last_page(target_, r->target, 0)) cell.is_rounded_up = true;
  }
  r->life = Life::kActive;
  r->batch_slot = slot;
  return admitted(*r);
}

Answer PlainEngine::act(const call::Evict& evict) {
  Answer answer;
  for (; answer.evicted < evict.pages && !target_.cached.empty(); ++answer.evicted) {
    target_.free.push_back(target_.cached.front());
    target_.published.erase(target_.cached.front());
    target_.cached.erase(target_.cached.begin());
  }
  return answer;
}

Answer PlainEngine::act(const call::Defrag&) {
  return flying_.empty() ? Answer{} : refuse("a step is in flight");
}

Answer PlainEngine::act(const call::Save& save) {
  Request* r = active(save.request);
  if (r == nullptr) return refuse("the request is not active");
  if (has_branches(*r)) return refuse(kBranches);
  const uint64_t number = saved_.size() + 1;
  saved_[number] = *r;
  Answer answer;
  answer.saved.resize(16);
  std::memcpy(answer.saved.data(), &number, 8);
  std::memcpy(answer.saved.data() + 8, &number, 8);
  return answer;
}

Answer PlainEngine::act(const call::Restore& restore) {
  uint64_t number = 0, again = 0;
  const bool anything = fault_ == Fault::kRestoreAnything;
  if (restore.bytes.size() >= 8) std::memcpy(&number, restore.bytes.data(), 8);
  if (restore.bytes.size() == 16) std::memcpy(&again, restore.bytes.data() + 8, 8);
  const bool sound = number == again && saved_.contains(number);
  if (!sound && !(anything && saved_.contains(number))) return refuse("the bytes are damaged");
  if (find(restore.admission.request) != nullptr) return refuse("the request exists already");
  const Request& saved = saved_[number];
  const int32_t slot = free_batch_slot();
  Request r{.admission = restore.admission, .batch_slot = slot, .tree_begin = saved.tree_begin};
  const uint64_t pages = pages_missing(r.target, saved.target.slots.size()) * target_.groups;
  if (slot < 0 || requests_.size() >= case_.engine->request_max || !fits_budget(worst_pages(r)) ||
      !can_take(target_, pages)) {
    return no_room();
  }
  r.handle = ++handles_;
  r.settled = saved.target.slots.size();
  r.target.tables.resize(target_.groups);
  r.draft.tables.resize(1);
  put(target_, r.target, saved.target.slots);
  return admitted(requests_[restore.admission.request] = std::move(r));
}

Answer PlainEngine::act(const call::FailAllocation& fail) {
  failing_ = fail.nth;
  return {};
}

}  // namespace kv
