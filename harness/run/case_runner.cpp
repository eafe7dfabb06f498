#include "harness/run/case_runner.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "harness/case/json.h"
#include "harness/core/check.h"
#include "harness/run/case_codec.h"
#include "harness/run/case_files.h"

namespace kv {
namespace {

struct Pending {
  uint64_t number = 0;
  Case c;
  size_t file = 0;
  Bytes bytes;  // of the case, to be sent
  bool sent = false;
};

RunOutcome outcome_of(Ending::Cause cause) {
  switch (cause) {
    case Ending::Cause::kHung:
      return RunOutcome::kHung;
    case Ending::Cause::kMemory:
      return RunOutcome::kMemory;
    default:
      return RunOutcome::kCrashed;
  }
}

/// Scalar multiply-adds of the largest step.
uint64_t step_work_max(const Case& c) {
  uint64_t most = 0;
  std::map<RequestId, uint64_t> lengths;
  for (const Op& operation : c.ops) {
    const auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    uint64_t pairs = 0;
    for (const op::StepRow& row : step->rows) {
      uint64_t& length = lengths[row.request];
      length += uint64_t{row.pad_left} + row.append + row.pad_right;
      pairs += (uint64_t{row.queries} + 1) * (length + 1);
    }
    most = std::max(most, pairs * c.shape.query_heads * (c.shape.head_dim_k + c.shape.head_dim_v));
  }
  return most;
}

}  // namespace

std::chrono::milliseconds silence_limit(const Case& c, std::chrono::milliseconds silence_max) {
  constexpr uint64_t kWorkPerMillisecond = 2000;  // the CPU device with all checks, with margin
  return silence_max + std::chrono::milliseconds(step_work_max(c) / kWorkPerMillisecond);
}

struct CaseRunner::State {
  explicit State(RunnerOptions from) : options(std::move(from)), files(options.folder) {}

  RunnerOptions options;
  CaseFiles files;  // of the pending cases
  Hello hello;
  std::unique_ptr<WorkerProcess> worker;
  std::deque<Pending> pending;    // oldest first; the first is the one whose events come
  std::vector<Case> history;      // ended in this process
  std::vector<Case> old_history;  // ended in the process before
  bool last_in_old = false;       // the last case ended in the process before
  size_t last_count = 0;          // cases before it in its process
  uint64_t next_number = 1;
  uint64_t sent_to_process = 0;

  Result<void> start_worker();
  Result<void> send_waiting();
  Result<Event> worker_frame(Frame frame);
  Result<Event> worker_ended(const Ending& ending);
  RunEnd end_of(const Ending& ending) const;
  void retire_oldest();
};

CaseRunner::CaseRunner(RunnerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
CaseRunner::CaseRunner(CaseRunner&&) noexcept = default;
CaseRunner& CaseRunner::operator=(CaseRunner&&) noexcept = default;
CaseRunner::~CaseRunner() = default;

const Hello& CaseRunner::hello() const { return state_->hello; }
size_t CaseRunner::pending() const { return state_->pending.size(); }
void CaseRunner::refresh() {
  state_->sent_to_process =
      std::max<uint64_t>(state_->sent_to_process, state_->options.process_cases_max);
}

std::vector<Case> CaseRunner::history() const {
  const std::vector<Case>& all = state_->last_in_old ? state_->old_history : state_->history;
  return {all.begin(), all.begin() + static_cast<ptrdiff_t>(state_->last_count)};
}

Result<CaseRunner> CaseRunner::start(RunnerOptions options) {
  CaseRunner runner(std::move(options));
  KV_RETURN_IF_ERROR(runner.state_->start_worker());
  return runner;
}

Result<void> CaseRunner::State::start_worker() {
  worker.reset();
  old_history = std::exchange(history, {});
  last_in_old = true;
  sent_to_process = 0;
  KV_ASSIGN_OR_RETURN(StartedWorker started, kv::start_worker(options));
  worker = std::move(started.process);
  hello = std::move(started.hello);
  return {};
}

Result<void> CaseRunner::submit(const Case& c) {
  State& s = *state_;
  KV_ASSIGN_OR_RETURN(const size_t file, s.files.put(case_to_json(c)));
  // The worker finds tensors beside the file.
  Bytes bytes = c.data.tensors_file.empty() ? encode_case(c) : Bytes();
  if (bytes.size() > kInlineBytesMax) bytes.clear();
  s.pending.push_back({.number = s.next_number++, .c = c, .file = file, .bytes = std::move(bytes)});
  return s.send_waiting();
}

Result<void> CaseRunner::State::send_waiting() {
  const bool none_sent = pending.empty() || !pending.front().sent;
  if (sent_to_process >= options.process_cases_max && none_sent) KV_RETURN_IF_ERROR(start_worker());
  std::chrono::milliseconds silence{0};
  for (Pending& p : pending) {
    silence = std::max(silence, silence_limit(p.c, options.silence_max));
    if (p.sent) continue;
    if (sent_to_process >= options.process_cases_max) break;  // wait until the process is drained
    worker->set_silence_max(silence);
    p.sent = true;
    ++sent_to_process;
    // A worker that is gone is noticed by next().
    worker->submit(FrameType::kRun, encode_request({p.number, files.path(p.file), p.bytes}));
  }
  return {};
}

Result<CaseRunner::Event> CaseRunner::next() {
  State& s = *state_;
  KV_CHECK(!s.pending.empty(), "no case is pending");
  for (;;) {
    auto event = s.worker->receive_within(std::chrono::milliseconds(100));
    if (s.options.interrupted != nullptr && *s.options.interrupted)
      return Error{ErrorKind::kTimeLimit, "interrupted"};
    if (!event) continue;
    if (const auto* ending = std::get_if<Ending>(&*event)) return s.worker_ended(*ending);
    return s.worker_frame(std::move(std::get<Frame>(*event)));
  }
}

Result<CaseRunner::Event> CaseRunner::State::worker_frame(Frame frame) {
  std::optional<Numbered> said;
  if (frame.type == FrameType::kOperation)
    said = decode_operation_in(std::make_shared<const Bytes>(std::move(frame.payload)));
  if (frame.type == FrameType::kEnd) said = decode_end(frame.payload);
  if (!said || said->number != pending.front().number) {
    worker->stop();
    Ending ending;
    ending.cause = Ending::Cause::kMalformed;
    ending.message = "sent kverify a message that makes no sense";
    return worker_ended(ending);
  }
  if (auto* observation = std::get_if<OpObservation>(&said->what))
    return Event(std::move(*observation));
  retire_oldest();
  KV_RETURN_IF_ERROR(send_waiting());
  return Event(std::get<RunEnd>(std::move(said->what)));
}

Result<CaseRunner::Event> CaseRunner::State::worker_ended(const Ending& ending) {
  const RunEnd end = end_of(ending);
  retire_oldest();
  for (Pending& p : pending) p.sent = false;
  KV_RETURN_IF_ERROR(start_worker());
  KV_RETURN_IF_ERROR(send_waiting());
  return Event(end);
}

RunEnd CaseRunner::State::end_of(const Ending& ending) const {
  RunEnd end;
  end.outcome = outcome_of(ending.cause);
  end.message = "it " + ending.message;
  const size_t ops = pending.front().c.ops.size();
  end.op_index = ending.op_index < ops ? ending.op_index : 0;
  end.output = ending.output;
  return end;
}

void CaseRunner::State::retire_oldest() {
  files.give_back(pending.front().file);
  last_count = history.size();
  last_in_old = false;
  history.push_back(std::move(pending.front().c));
  pending.pop_front();
}

}  // namespace kv
