// Purpose: what an engine must believe and hold after every operation of a history: a relation, not
// an implementation. Which page a slot lies in, what is evicted and what a prompt finds in the
// prefix cache are the engine's to choose; the model takes its word and holds it to it.
// Contract: plan() turns an operation of the case into the call to make and says what the engine
// may answer; apply() takes the answer. Every operation has a meaning in every state: what a
// request's state does not allow has to be refused. Deterministic: the same case and answers give
// the same calls.
// Example:
//   Model model(c);
//   for (const Op& op : c.ops)
//     if (const auto planned = model.plan(op)) model.apply(*planned,
//     engine.perform(planned->call));
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "harness/case/case.h"
#include "harness/engine/content.h"
#include "harness/engine/engine_call.h"
#include "harness/engine/engine_state.h"

namespace kv {

/// What an engine may answer.
enum class Expect : uint8_t {
  kSuccess,          // nothing else
  kSuccessOrNoRoom,  // or KV_EXHAUSTED
  kRefusal,          // KV_REFUSED: the call breaks the contract
  kAnything,         // lawful or not by what only the engine knows; but atomic
};

struct Planned {
  Call call;
  Expect expect = Expect::kSuccess;
  const char* why = "";             // it has to be refused
  std::vector<uint64_t> scheduled;  // of each row of a step, when it succeeds
  std::optional<RequestId> saved;   // whose bytes are restored
};

struct ModelRequest {
  RequestId request = {};
  Life life = Life::kActive;
  uint64_t owner = 0, handle = 0;
  // What moves when beams are reordered:
  uint64_t side_input = 0, slots_max = 0;
  int64_t position_offset = 0;
  std::vector<uint64_t> stream;    // tokens stored or known to come; slot i holds stream[i]
  std::vector<StoredToken> slots;  // of the target cache
  std::vector<StoredToken> draft;  // of the draft cache
  uint64_t scheduled = 0;          // tokens that the case's rows have asked for so far
  uint64_t settled = 0;            // slots before this one are not speculative
  uint64_t tree_begin = 0;         // slots from here on may be branches of a tree
};
/// The slots are no path: some of them are branches that have to go first.
bool has_branches(const ModelRequest& r);

/// The tokens that an operation had when its history ran first, for when it runs again under other
/// circumstances: of an admission the prompt; of each row of a step all that its cache held after
/// it. The row then brings its request there, and is left out where that is not possible.
struct Told {
  std::vector<std::vector<uint64_t>> tokens;
};

/// A launched step that has not completed.
struct FlyingStep {
  uint64_t number = 0;
  bool draft = false;
  std::vector<RequestId> requests;
};

/// Slots whose content the last operation may have changed.
struct Touched {
  RequestId request = {};
  bool draft = false;
  uint64_t begin = 0, end = 0;
};

/// K of a token that the last operation turned.
struct Turned {
  StoredToken before;  // as it was
  bool draft = false;
  int64_t back = 0;  // by so many positions
};

struct ModelOptions {
  bool keep_gone = true;     // the tokens of requests that are gone, for those that begin like them
  bool shift_turns = false;  // what Engine::shift_turns() says
};

class Model {
 public:
  explicit Model(const Case& c, const ModelOptions& options = {});

  /// Nothing: the operation has no call here (restore of what was never saved).
  std::optional<Planned> plan(const Op& op, const Told* told = nullptr);
  void apply(const Planned& planned, const Answer& answer);

  const std::map<RequestId, ModelRequest>& requests() const { return requests_; }
  const ModelRequest* find(RequestId request) const;
  /// The tokens of one that is gone, as they were last.
  const std::vector<uint64_t>& tokens_of_gone(RequestId request) const {
    return streams_.at(request);
  }
  const std::vector<FlyingStep>& in_flight() const { return in_flight_; }
  const std::vector<Touched>& touched() const { return touched_; }
  const std::vector<Turned>& turned() const { return turned_; }
  uint64_t launched() const { return launched_; }
  /// An allocation has been made to fail; it need not have happened yet.
  bool is_failing() const { return failing_; }
  const std::vector<CacheGroup>& groups() const { return groups_; }
  const EngineLevel& engine() const { return *case_.engine; }
  const Case& history_case() const { return case_; }

 private:
  struct SavedRequest {
    std::vector<std::byte> bytes;
    ModelRequest content;
  };
  using Plan = std::optional<Planned>;

  // model_plan.cpp
  Plan plan_op(const op::Admit& admit);
  Plan plan_op(const op::Append& append);
  Plan plan_op(const op::Step& step);
  Plan plan_op(const op::Fork& fork);
  Plan plan_op(const op::Reorder& reorder);
  Plan plan_op(const op::Truncate& truncate);
  Plan plan_op(const op::Shift& shift);
  Plan plan_op(const op::Cancel& cancel);
  Plan plan_op(const op::Finish& finish);
  Plan plan_op(const op::Preempt& preempt);
  Plan plan_op(const op::Resume& resume);
  Plan plan_op(const op::Evict& evict);
  Plan plan_op(const op::Defrag& defrag);
  Plan plan_op(const op::Save& save);
  Plan plan_op(const op::Restore& restore);
  Plan plan_op(const op::Complete& complete);
  Plan plan_op(const op::FailAllocation& fail);
  Plan plan_op(const op::Hostile& hostile);  // model_hostile.cpp
  call::StepRow hostile_row(RequestId request, uint32_t tokens);
  Plan hostile_restore(const op::Hostile& hostile);

  // model_step.cpp
  bool follow(ModelRequest& r, const std::vector<uint64_t>& target, op::StepRow& row, bool draft);
  const char* why_no_row(const ModelRequest& r, const op::StepRow& row, bool draft);
  call::StepRow plan_row(ModelRequest& r, const op::StepRow& row, bool draft);
  void apply_row(const call::StepRow& row, bool draft);

  // model_apply.cpp
  void apply_call(const call::Admit& admit, const Planned&, const Answer& answer);
  void apply_call(const call::Step& step, const Planned& planned, const Answer& answer);
  void apply_call(const call::Complete& complete, const Planned&, const Answer&);
  void apply_call(const call::Fork& fork, const Planned&, const Answer& answer);
  void apply_call(const call::Reorder& reorder, const Planned&, const Answer&);
  void apply_call(const call::Truncate& truncate, const Planned&, const Answer&);
  void apply_call(const call::Shift& shift, const Planned&, const Answer&);
  void apply_call(const call::Cancel& cancel, const Planned&, const Answer&);
  void apply_call(const call::Finish& finish, const Planned&, const Answer&);
  void apply_call(const call::Preempt& preempt, const Planned&, const Answer&);
  void apply_call(const call::Resume& resume, const Planned&, const Answer& answer);
  void apply_call(const call::Evict&, const Planned&, const Answer&) {}
  void apply_call(const call::Defrag&, const Planned&, const Answer&);
  void apply_call(const call::Save& save, const Planned&, const Answer& answer);
  void apply_call(const call::Restore& restore, const Planned& planned, const Answer& answer);
  void apply_call(const call::FailAllocation& fail, const Planned&, const Answer&);

  ModelRequest* find_mutable(RequestId request);
  bool is_active(RequestId request) const;
  bool has_windows() const;
  uint64_t make_token(RequestId request);
  void extend_stream(ModelRequest& r, uint64_t length);
  void forget(RequestId request);
  void touch(RequestId request, uint64_t begin, uint64_t end, bool draft = false);
  void touch_all(const ModelRequest& r);
  void turn_back(std::vector<StoredToken>& slots, const call::Shift& shift, bool draft);
  void end_steps(uint64_t number);

  const Case& case_;
  ModelOptions options_;
  std::vector<CacheGroup> groups_;
  const Told* told_ = nullptr;  // of the operation that is being planned
  std::map<RequestId, ModelRequest> requests_;
  std::map<RequestId, std::vector<uint64_t>> streams_;  // of every request ever, as it was last
  std::map<RequestId, uint64_t> made_up_;               // tokens for each request
  std::map<RequestId, uint64_t> old_handles_;           // of requests that are gone
  std::map<RequestId, SavedRequest> saved_;
  std::vector<FlyingStep> in_flight_;
  std::vector<Touched> touched_;
  std::vector<Turned> turned_;
  uint64_t launched_ = 0;
  bool failing_ = false;  // an allocation is going to fail
};

/// What slot `slots.size()` holds when the request's stream goes on.
StoredToken next_stored(const ModelRequest& r, const std::vector<StoredToken>& slots,
                        uint64_t token, uint64_t data_seed);
/// What the tokens of a row become behind `slots`: one after another, or each behind its parent in
/// a tree.
std::vector<StoredToken> appended_tokens(const ModelRequest& r,
                                         const std::vector<StoredToken>& slots,
                                         const std::vector<uint64_t>& tokens,
                                         const std::vector<int32_t>& parents, uint64_t data_seed);

}  // namespace kv
