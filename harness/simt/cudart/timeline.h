// Purpose: launched work, executed as late as its dependencies allow.
// Contract: work is a directed acyclic graph; an item's predecessors are older than itself. Nothing
// runs until somebody asks for an item to be complete, and then only that item and what it depends
// on. Among items that may run, the schedule seed chooses: seed 0 takes the newest first, so two
// pieces of work that no edge orders run in the opposite of the order in which they were issued,
// and a missing edge really corrupts something; another seed chooses by Philox.
// Example:
//   WorkId a = timeline.add({.action = upload});
//   WorkId b = timeline.add({.action = kernel, .after = {a}});
//   timeline.complete({{b}});  // upload, kernel
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "harness/simt/cudart/overlap.h"

namespace kv::simt::cudart {

/// Names one piece of work; ascending in the order of issue. 0 is "nothing" and always done.
using WorkId = uint64_t;

struct Work {
  std::function<void()> action;
  std::vector<WorkId> after = {};
  bool touches_host = false;  // reads or writes host memory, or runs host code
};

class Timeline {
 public:
  /// More work than this never waits: the oldest item is executed first, as on a real device, whose
  /// launch queue is finite.
  static constexpr size_t kPendingMax = 4096;

  WorkId add(Work work);
  bool is_done(WorkId id) const { return !pending_.contains(id); }
  size_t pending() const { return pending_.size(); }
  /// Runs `action` now, as adding and completing it would where nothing else waits.
  template <class Action>
  WorkId run_alone(Action&& action) {
    ++ticks_;
    order_ = {.work = ++last_};
    const WorkId id = last_;
    action();
    return id;
  }

  void complete(std::span<const WorkId> targets);
  void complete_all();
  /// Executes one item that the targets wait for, or one of them; nothing when all are done.
  void step(std::span<const WorkId> targets);
  /// Forgets all pending work.
  void drop_all() {
    pending_.clear();
    overlap_.clear();
  }
  /// Forgets pending work that touches host memory, and keeps the order of the rest.
  void drop_host_work();

  void set_seed(uint64_t seed) { seed_ = seed; }
  /// Restarts the sequence of choices.
  void restart();

  /// Of the item whose action has just begun.
  const WorkOrder& order() const { return order_; }

  /// Device time in ticks: one for each item, and what its action adds. A tick is called a
  /// nanosecond where the CUDA runtime wants one.
  uint64_t ticks() const { return ticks_; }
  void advance(uint64_t ticks) { ticks_ += ticks; }

 private:
  std::set<WorkId> needed_by(std::span<const WorkId> targets) const;
  void execute(const std::set<WorkId>& items);
  bool is_chain(const std::set<WorkId>& items) const;
  WorkId choose(const std::set<WorkId>& ready);
  void run(WorkId id);

  std::map<WorkId, Work> pending_;
  Overlap overlap_;
  WorkOrder order_;
  WorkId last_ = 0;
  uint64_t seed_ = 0;
  uint64_t choices_ = 0;
  uint64_t ticks_ = 0;
};

}  // namespace kv::simt::cudart
