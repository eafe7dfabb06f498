#include "harness/simt/cudart/timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/core/philox.h"

namespace kv::simt::cudart {
namespace {

constexpr uint64_t kStreamOfChoices = 0x73747265616d73;  // "streams", apart from other draws

}  // namespace

WorkId Timeline::add(Work work) {
  while (pending_.size() >= kPendingMax) run(pending_.begin()->first);
  const WorkId id = ++last_;
  std::erase_if(work.after, [this](WorkId before) { return is_done(before); });
  overlap_.issued(id, work.after);
  pending_.emplace(id, std::move(work));
  return id;
}

void Timeline::complete(std::span<const WorkId> targets) { execute(needed_by(targets)); }

void Timeline::complete_all() {
  std::set<WorkId> all;
  for (const auto& [id, work] : pending_) all.insert(all.end(), id);
  execute(all);
}

void Timeline::step(std::span<const WorkId> targets) {
  std::set<WorkId> ready;
  for (const WorkId id : needed_by(targets)) {
    const auto& after = pending_.at(id).after;
    const bool waits =
        std::any_of(after.begin(), after.end(), [this](WorkId before) { return !is_done(before); });
    if (!waits) ready.insert(id);
  }
  if (!ready.empty()) run(choose(ready));
}

void Timeline::drop_host_work() {
  for (auto& [id, work] : pending_) {
    if (work.touches_host) work.action = nullptr;
  }
}

void Timeline::restart() {
  choices_ = 0;
  ticks_ = 0;
}

std::set<WorkId> Timeline::needed_by(std::span<const WorkId> targets) const {
  std::set<WorkId> needed;
  std::vector<WorkId> open(targets.begin(), targets.end());
  while (!open.empty()) {
    const WorkId id = open.back();
    open.pop_back();
    const auto found = pending_.find(id);
    if (found == pending_.end() || !needed.insert(id).second) continue;
    open.insert(open.end(), found->second.after.begin(), found->second.after.end());
  }
  return needed;
}

/// Each waits for the one before: there is nothing to choose.
bool Timeline::is_chain(const std::set<WorkId>& items) const {
  WorkId before = 0;
  for (const WorkId id : items) {
    const auto& after = pending_.at(id).after;
    if (before && std::find(after.begin(), after.end(), before) == after.end()) return false;
    before = id;
  }
  return true;
}

void Timeline::execute(const std::set<WorkId>& items) {
  if (is_chain(items)) {
    for (const WorkId id : items) run(id);
    return;
  }
  std::map<WorkId, size_t> waiting;
  std::map<WorkId, std::vector<WorkId>> followers;
  std::set<WorkId> ready;
  for (const WorkId id : items) {
    for (const WorkId before : pending_.at(id).after) {
      if (is_done(before)) continue;
      ++waiting[id];
      followers[before].push_back(id);
    }
    if (!waiting.contains(id)) ready.insert(id);
  }
  while (!ready.empty()) {
    const WorkId id = choose(ready);
    ready.erase(id);
    run(id);
    for (const WorkId next : followers[id]) {
      if (--waiting[next] == 0) ready.insert(next);
    }
  }
}

WorkId Timeline::choose(const std::set<WorkId>& ready) {
  if (ready.size() == 1) return *ready.begin();
  if (seed_ == 0) return *ready.rbegin();
  const uint64_t draw = Philox{.key = seed_}.word(kStreamOfChoices, choices_++);
  return *std::next(ready.begin(), static_cast<std::ptrdiff_t>(draw % ready.size()));
}

void Timeline::run(WorkId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // a host function has already asked for it
  const auto action = std::move(found->second.action);
  pending_.erase(found);
  ++ticks_;
  order_ = overlap_.runs(id);
  if (action) action();
}

}  // namespace kv::simt::cudart
