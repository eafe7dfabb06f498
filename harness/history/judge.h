// Purpose: the judge of histories: performs a case's operations on an engine and holds every answer
// and every state against the model.
// Contract: after each operation, in this order, without floating point: reference counts, the
// partition of the pool, the write set of a step, lengths and positions, fences, the shape of the
// index, refusals and their atomicity, then bytes: what the operation touched, and at intervals, on
// suspicion and at the end everything. Values last, of a sample of steps. The first finding ends
// the history. Deterministic. Example:
//   HistoryJudge judge(c, engine, {});
//   for (const Op& op : c.ops) if (auto found = judge.perform(op)) return *found;
//   return judge.finish();
#pragma once

#include <array>
#include <set>
#include <variant>

#include "harness/history/provenance.h"
#include "harness/history/state_checks.h"
#include "harness/history/values.h"

namespace kv {

inline constexpr size_t kOpKinds = std::variant_size_v<Op>;

struct HistoryStats {
  uint64_t operations = 0, calls = 0, succeeded = 0, refused = 0, exhausted = 0;
  uint64_t not_offered = 0;  // lawful calls that the engine declined (KV_UNSUPPORTED)
  uint64_t steps = 0;        // that succeeded
  uint64_t slots_read = 0;
  uint64_t twins = 0, twin_operations = 0;
  std::array<uint64_t, kOpKinds> met = {};                             // operations by kind
  std::array<std::array<uint64_t, kOpKinds>, kOpKinds> adjacent = {};  // [first][second]
  EngineCounters counters;                                             // of the engine
  ValueCounts values;
  HistoryStats& operator+=(const HistoryStats& other);
};

/// Slots of a page that an operation wrote.
struct PageWrite {
  uint32_t page = 0;
  uint64_t first_slot = 0, slots = 0;  // of the page
  std::string by;                      // "request 3, slots 8 to 11", "copy from page 7"
};

/// What one operation did, for explanations.
struct OpRecord {
  uint32_t op_index = 0;
  std::string call, answer;
  std::vector<RequestId> requests;  // that the call names
  std::vector<PageWrite> writes;
  EngineState state;  // after it
};

/// What an operation that succeeded was, for when it happens again (twin.h): rows as they were
/// made, and their tokens.
struct Happened {
  uint32_t op_index = 0;
  Op op;
  Told told;
  std::vector<call::Admit> contents = {};  // of requests that have theirs from others now
};

struct JudgeSettings {
  uint32_t everything_every = 16;  // operations between two checks of all bytes
  double value_steps = 0;          // fraction of the steps whose outputs are judged
  bool record = false;             // keep an OpRecord of each operation
  Conventions conventions = {};
  Echo* echo = nullptr;  // hears all outputs
  bool keep_happened = false;
  bool keep_gone = true;  // see ModelOptions
  /// Checks that are asked and not heard, so that those behind them are: what would be found
  /// without them? Bits by CheckClass.
  uint32_t unheard = 0;
};

class HistoryJudge {
 public:
  HistoryJudge(const Case& c, Engine& engine, const JudgeSettings& settings);

  /// `told`: of an operation that happened before, in another history.
  MaybeFinding perform(const Op& op, const Told* told = nullptr);
  /// Ends all requests; nothing may be left; a fresh request is then served as ever.
  MaybeFinding finish();

  const Model& model() const { return model_; }
  const EngineState& state() const { return state_; }
  const HistoryStats& stats() const { return stats_; }
  const std::vector<OpRecord>& records() const { return records_; }
  const std::vector<Happened>& happened() const { return happened_; }

 private:
  MaybeFinding heard(MaybeFinding found) const;
  MaybeFinding perform_now(const Op& op, const Told* told);
  void take_stats();
  void keep(const Op& op, const Planned& planned);
  Answer perform_call(Planned& planned);
  MaybeFinding check_values(const Planned& planned, const Answer& answer);
  MaybeFinding check_answer(const Planned& planned, const Answer& answer) const;
  MaybeFinding check_no_room(const Planned& planned) const;
  bool needs_room(const Call& call) const;
  MaybeFinding check_admitted(const Planned& planned, const Answer& answer);
  MaybeFinding check_state(const Planned& planned, const Answer& answer);
  MaybeFinding check_fence(const Planned& planned, const Answer& answer);
  MaybeFinding check_draft();
  MaybeFinding check_device();
  MaybeFinding check_bytes(const Planned& planned, const Answer& answer);
  std::vector<Touched> touched_by(const Planned& planned, const Answer& answer) const;
  MaybeFinding check_all_bytes();
  MaybeFinding check_slots(std::span<const Touched> touched, bool all_prefixes);
  MaybeFinding check_empty() const;
  void note_flying(const Planned& planned);
  void note_suspicion(const Planned& planned);
  void record(const Planned& planned, const Answer& answer);

  const Case& case_;
  Engine& engine_;
  JudgeSettings settings_;
  Model model_;
  Provenance provenance_;
  Values values_;
  EngineState before_, state_, draft_before_, draft_;
  struct FlyingPages {
    uint64_t step = 0;
    std::vector<uint32_t> held;     // by the rows' tables
    std::vector<uint32_t> written;  // of them
  };
  std::vector<FlyingPages> flying_;
  std::set<uint64_t> handles_;  // ever given
  std::vector<OpRecord> records_;
  std::vector<Happened> happened_;
  HistoryStats stats_;
  uint32_t op_index_ = 0;
  size_t last_kind_ = kOpKinds;
  bool check_everything_ = false;  // as soon as no step is in flight
};

/// The whole case on the engine.
struct HistoryResult {
  MaybeFinding finding;
  HistoryStats stats;
  std::vector<OpRecord> records;
  std::vector<Happened> happened;
};
HistoryResult run_history(const Case& c, Engine& engine, const JudgeSettings& settings);

}  // namespace kv
