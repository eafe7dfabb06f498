// Purpose: from a case to a verdict that may be published, a history's too.
// Contract: cases are examined in the order submitted; while one is judged here the next already
// runs in the worker. A failure is repeated in a fresh process: if it comes again it is a failure;
// if it comes again only after the cases that its process had run before, it is a failure with
// history, and the smallest tail of them that suffices (of 1, 4, 16, ... cases) is kept; otherwise
// the case is nondeterministic. A history owns its engine, so none before it matters. Errors are
// the harness's own. Example:
//   KV_ASSIGN_OR_RETURN(auto examiner, Examiner::start(bench));
//   examiner.submit(c); KV_ASSIGN_OR_RETURN(auto examined, examiner.next());
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/certify/bench.h"
#include "harness/gen/draw.h"
#include "harness/history/judge.h"
#include "harness/relation/pair_judge.h"
#include "harness/run/case_runner.h"

namespace kv {

struct Examined {
  Case c;
  Verdict verdict;
  std::vector<Case> preceding;  // not empty: the failure needs these to run first
  std::string output;           // the last of what the code under test printed
  uint64_t warp_instructions = 0;
  std::optional<HistoryStats> history;  // of a case for the engine level
  // Of a history's finding: told in full, for a person, a program, and as a Chrome trace.
  std::string story = {}, trace = {};
  nlohmann::ordered_json details = {};
  bool after_itself = false;         // its image ran last: the case is in the runner's history
  uint32_t runs = 1;                 // judged for this verdict: of the case, of its image
  std::optional<BaseRun> kept = {};  // where Pair::keep asks for it, of a sound case
};

/// Will the case come again with a relation? Then its run is kept, and not made again.
enum class Keep : uint8_t { kNo, kForItsRelation };

class Examiner {
 public:
  static Result<Examiner> start(const BenchOptions& bench, const JudgeOptions& judging = {});
  Examiner(Examiner&&) noexcept;
  Examiner& operator=(Examiner&&) noexcept;
  ~Examiner();

  const Hello& hello() const;
  /// What the generator may draw for this plugin.
  DrawOptions drawing() const {
    return {.variants = hello().plugin.variants, .offered = hello().offered};
  }
  /// The same for histories.
  DrawOptions history_drawing();
  Result<void> submit(Case c, Keep keep = Keep::kNo);
  /// The verdict of the oldest pending case. `progress`, if any, is called after each operation.
  Result<Examined> next(const std::function<void(const OpObservation&)>& progress = {});

 private:
  Examiner();
  struct State;
  std::unique_ptr<State> state_;
};

/// A case and its image, in the order in which a worker runs them.
struct Pair {
  Case c;
  std::optional<Image> image;
  std::optional<BaseRun> base = {};  // then the image alone runs
  bool keep = false;
};
Result<Pair> submit_pair(CaseRunner& runner, Case c);
/// The oldest pending pair of the runner, judged as its observations come; nothing is repeated.
Result<Examined> judge_next(CaseRunner& runner, const JudgeOptions& judging, Pair pair,
                            const std::function<void(const OpObservation&)>& progress);
/// `judging` with the suppressions of `bench`; bad input when they cannot be read.
Result<JudgeOptions> judging_on(const BenchOptions& bench, JudgeOptions judging);
/// How and on what the cases of `bench` run.
RunnerOptions runner_options(const BenchOptions& bench, const std::string& folder);

/// Is it the same finding, down to the bits?
bool same_failure(const Verdict& a, const Verdict& b);

/// Runs `preceding` unjudged and then `c`, in one fresh process.
Result<Examined> examine_once(const BenchOptions& bench, const JudgeOptions& judging, const Case& c,
                              const std::vector<Case>& preceding);

/// Everything that a fresh process shows of the case, unjudged.
Result<Observation> observe_once(const BenchOptions& bench, const Case& c);

bool is_finding(const Verdict& verdict);

}  // namespace kv
