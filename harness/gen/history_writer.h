// Purpose: writes the operations of a history one by one, knowing roughly who lives and how long
// they are.
// Contract: total; each call appends at least one operation to the case. Ids are mostly those of
// requests that can do what is asked; sometimes anybody's, which then has to be refused.
#pragma once

#include <vector>

#include "harness/gen/history_settings.h"

namespace kv {

class HistoryWriter {
 public:
  HistoryWriter(ChoiceSource& choices, const HistoryScope& scope, const HistoryAxes& axes, Case& c);

  void write_one();

 private:
  struct Life {
    RequestId request;
    uint64_t length = 0, prompt_left = 0, slots_max = 0, owner = 0;
    bool active = true;
    RequestId family;  // of the request that it was first forked from
  };
  struct Identity {  // of every id that was admitted last under it
    uint64_t side_input = 0;
    int64_t position_offset = 0;
  };
  using Write = void (HistoryWriter::*)();
  struct Weighted {
    uint32_t weight;
    Write write;
  };

  void admit();
  void append();
  void step();
  void speculate();
  void verify_tree(Life& life, op::StepRow row);
  void draft_step();
  void fork();
  void reorder();
  void truncate();
  void shift();
  void leave();
  void preempt();
  void resume();
  void evict();
  void defrag();
  void save();
  void restore();
  void complete();
  void fail_allocation();
  void hostile();

  /// Whether one more request with this limit may find room: batch slots and worst cases.
  bool has_room(uint64_t slots_max) const;
  RequestId new_id();
  RequestId any_id();
  /// One that is active (or not), or nobody.
  Life* some(bool active);
  Life* find(RequestId request);
  /// Mostly an active one's; anybody's now and then.
  RequestId mostly_active();
  uint64_t draw_tokens(uint64_t most);
  op::StepRow row(Life& life);
  void remove(RequestId request);

  ChoiceSource& choices_;
  const HistoryScope& scope_;
  const HistoryAxes& axes_;
  Case& case_;
  std::vector<Weighted> writes_;
  uint32_t weight_ = 0;
  std::vector<Life> lives_;
  std::vector<Life> saved_;
  std::vector<Identity> identities_;  // [id]
  uint32_t ids_ = 0;
  uint64_t in_flight_ = 0;
};

}  // namespace kv
