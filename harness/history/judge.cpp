#include "harness/history/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/history/budget_checks.h"

namespace kv {

HistoryStats& HistoryStats::operator+=(const HistoryStats& other) {
  operations += other.operations;
  calls += other.calls;
  succeeded += other.succeeded;
  refused += other.refused;
  exhausted += other.exhausted;
  not_offered += other.not_offered;
  steps += other.steps;
  slots_read += other.slots_read;
  twins += other.twins;
  twin_operations += other.twin_operations;
  values += other.values;
  for (size_t i = 0; i < kOpKinds; ++i) {
    met[i] += other.met[i];
    for (size_t j = 0; j < kOpKinds; ++j) adjacent[i][j] += other.adjacent[i][j];
  }
  counters.hit_pages += other.counters.hit_pages;
  counters.published_pages += other.counters.published_pages;
  counters.evicted_pages += other.counters.evicted_pages;
  counters.expired_pages += other.counters.expired_pages;
  counters.copied_slots += other.counters.copied_slots;
  counters.swapped_out_pages += other.counters.swapped_out_pages;
  counters.swapped_in_pages += other.counters.swapped_in_pages;
  counters.fenced_pages += other.counters.fenced_pages;
  return *this;
}

HistoryJudge::HistoryJudge(const Case& c, Engine& engine, const JudgeSettings& settings)
    : case_(c),
      engine_(engine),
      settings_(settings),
      model_(c, {.keep_gone = settings.keep_gone, .shift_turns = engine.shift_turns()}),
      provenance_(c, engine),
      values_(c, settings.value_steps, settings.conventions, settings.echo) {}

MaybeFinding HistoryJudge::perform(const Op& op, const Told* told) {
  const size_t kind = op.index();
  ++stats_.met[kind];
  if (last_kind_ < kOpKinds) ++stats_.adjacent[last_kind_][kind];
  last_kind_ = kind;
  ++stats_.operations;
  MaybeFinding found = perform_now(op, told);
  take_stats();
  if (found) found->op_index = op_index_;
  ++op_index_;
  return found;
}

void HistoryJudge::take_stats() {
  stats_.slots_read = provenance_.slots_read();
  stats_.counters = state_.counters;
  stats_.values = values_.counts();
}

MaybeFinding HistoryJudge::heard(MaybeFinding found) const {
  const bool is_unheard =
      found && (settings_.unheard >> static_cast<uint32_t>(found->check) & 1) != 0;
  return is_unheard ? std::nullopt : std::move(found);
}

MaybeFinding HistoryJudge::perform_now(const Op& op, const Told* told) {
  std::optional<Planned> planned = model_.plan(op, told);
  if (!planned) return std::nullopt;
  ++stats_.calls;
  const Answer answer = perform_call(*planned);
  stats_.succeeded += answer.status == CallStatus::kOk;
  stats_.refused += answer.status == CallStatus::kRefused;
  stats_.exhausted += answer.status == CallStatus::kExhausted;
  stats_.not_offered += answer.status == CallStatus::kUnsupported;
  stats_.steps += answer.status == CallStatus::kOk && std::get_if<call::Step>(&planned->call);
  MaybeFinding found = heard(check_device());
  if (!found) found = heard(check_answer(*planned, answer));
  if (!found) found = heard(check_admitted(*planned, answer));
  if (!found) {
    model_.apply(*planned, answer);
    const bool done = answer.status == CallStatus::kOk;
    provenance_.note(model_, done ? std::get_if<call::Step>(&planned->call) : nullptr);
    if (settings_.keep_happened && answer.status == CallStatus::kOk) keep(op, *planned);
    found = check_state(*planned, answer);
    if (!found) found = heard(check_budget(model_));
  }
  if (!found) found = heard(check_bytes(*planned, answer));
  if (!found) found = heard(check_values(*planned, answer));
  // What the device did late, when bytes were read, explains what they are.
  const bool is_device = found && found->check == CheckClass::kDevice;
  if (auto device = heard(check_device()); device && !is_device) found = std::move(device);
  if (settings_.record) record(*planned, answer);
  if (found) found->operation = describe(planned->call);
  return found;
}

// Outputs are asked for where they will be judged. An engine without attention says so, changes
// nothing, and is asked for the appends alone from then on.
Answer HistoryJudge::perform_call(Planned& planned) {
  auto* step = std::get_if<call::Step>(&planned.call);
  if (step == nullptr) return engine_.perform(planned.call);
  const bool lawful = planned.expect == Expect::kSuccessOrNoRoom;
  step->wants_outputs = lawful && values_.wants(*step);
  Answer answer = engine_.perform(planned.call);
  if (!step->wants_outputs || answer.status != CallStatus::kUnsupported) return answer;
  values_.not_offered();
  step->wants_outputs = false;
  return engine_.perform(planned.call);
}

MaybeFinding HistoryJudge::check_device() {
  DeviceReport report = engine_.take_device_report();
  if (!report.findings.empty()) {
    return HistoryFinding{.check = CheckClass::kDevice,
                          .message = std::move(report.findings.front())};
  }
  if (report.unsupported.empty()) return std::nullopt;
  return HistoryFinding{.check = CheckClass::kUnsupported,
                        .message = std::move(report.unsupported)};
}

// Bytes before values: what rows attended to is looked at before their outputs are.
MaybeFinding HistoryJudge::check_values(const Planned& planned, const Answer& answer) {
  if (answer.status == CallStatus::kOk) {
    values_.outdate(planned.call);
    const auto* step = std::get_if<call::Step>(&planned.call);
    if (step != nullptr && step->wants_outputs) values_.note(model_, *step, answer.step);
  }
  const std::vector<Touched> due = values_.due(model_);
  if (!due.empty()) {
    if (auto found = heard(check_slots(due, false))) return found;
  }
  return values_.judge(model_, engine_);
}

// All that is decided without reading a byte.
MaybeFinding HistoryJudge::check_state(const Planned& planned, const Answer& answer) {
  Result<EngineState> state = engine_.snapshot(CacheKind::kTarget);
  if (!state.ok()) {
    return HistoryFinding{.check = CheckClass::kSnapshot, .message = state.error().message};
  }
  before_ = std::move(state_);
  state_ = std::move(*state);
  if (state_.page_count != case_.pool.page_count) {
    return HistoryFinding{.check = CheckClass::kSnapshot,
                          .message = fmt::format("expected a pool of {} pages, got {}",
                                                 case_.pool.page_count, state_.page_count)};
  }
  const auto* step = std::get_if<call::Step>(&planned.call);
  const bool launched = step != nullptr && answer.status == CallStatus::kOk && !step->draft;
  if (auto found = heard(check_references(state_))) return found;
  if (auto found = heard(check_partition(state_))) return found;
  if (launched) {
    if (auto found = heard(check_write_set(before_, state_, *step))) return found;
  }
  if (auto found = heard(check_lengths(state_, model_, false))) return found;
  if (auto found = heard(check_fence(planned, answer))) return found;
  std::vector<uint32_t> flying_writes;
  for (const FlyingPages& flying : flying_) {
    flying_writes.insert(flying_writes.end(), flying.written.begin(), flying.written.end());
  }
  if (auto found = heard(check_index_shape(state_, flying_writes))) return found;
  if (!std::holds_alternative<call::Defrag>(planned.call)) {
    if (auto found = heard(check_settled(before_, state_, model_))) return found;
  }
  const bool first = before_.page_count == 0;
  if (answer.status != CallStatus::kOk && !first) {
    const std::string changed = first_difference(before_, state_);
    if (!changed.empty()) {
      MaybeFinding found = heard(HistoryFinding{
          .check = CheckClass::kAtomicity,
          .message = fmt::format("answered {} ({}) and changed {}", status_name(answer.status),
                                 answer.message, changed)});
      if (found) return found;
    }
  }
  if (auto found = heard(check_draft())) return found;
  note_suspicion(planned);
  return std::nullopt;
}

MaybeFinding HistoryJudge::check_draft() {
  if (model_.engine().draft_layers == 0) return std::nullopt;
  Result<EngineState> state = engine_.snapshot(CacheKind::kDraft);
  if (!state.ok()) {
    return HistoryFinding{.check = CheckClass::kSnapshot, .message = state.error().message};
  }
  draft_ = std::move(*state);
  MaybeFinding found = heard(check_references(draft_));
  if (!found) found = heard(check_partition(draft_));
  if (!found) found = heard(check_lengths(draft_, model_, true));
  if (found) found->draft = true;
  return found;
}

// Pages that a launched step touches are not handed out before it has ended.
MaybeFinding HistoryJudge::check_fence(const Planned& planned, const Answer& answer) {
  std::erase_if(flying_, [this](const FlyingPages& flying) {
    const auto& steps = model_.in_flight();
    return std::none_of(steps.begin(), steps.end(),
                        [&](const FlyingStep& step) { return step.number == flying.step; });
  });
  const auto report = [](uint32_t page, uint64_t step, const char* what) {
    return HistoryFinding{
        .check = CheckClass::kFence,
        .message =
            fmt::format("page {} {}, but step {} is in flight and touches it", page, what, step),
        .page = page};
  };
  for (const FlyingPages& flying : flying_) {
    for (const uint32_t page : flying.held) {
      if (std::find(state_.free.begin(), state_.free.end(), page) != state_.free.end()) {
        return report(page, flying.step, "is free");
      }
    }
  }
  if (answer.status == CallStatus::kOk && std::holds_alternative<call::Step>(planned.call)) {
    note_flying(planned);
  }
  return std::nullopt;
}

void HistoryJudge::note_flying(const Planned& planned) {
  const auto& step = std::get<call::Step>(planned.call);
  if (step.draft || model_.in_flight().empty() ||
      model_.in_flight().back().number != model_.launched()) {
    return;
  }
  FlyingPages flying{.step = model_.launched()};
  for (const call::StepRow& row : step.rows) {
    const RequestState* now = state_.find(row.request);
    // One that was cancelled while the step ran holds what it held; what it wrote it gave up.
    const RequestState* r = now != nullptr ? now : before_.find(row.request);
    if (r == nullptr) continue;
    for (const auto& table : r->tables) {
      for (size_t p = 0; p < table.size(); ++p) {
        if (table[p] < 0) continue;
        flying.held.push_back(static_cast<uint32_t>(table[p]));
        const bool written =
            now != nullptr && row.append > 0 && (p + 1) * state_.page_slots > row.length;
        if (written) flying.written.push_back(static_cast<uint32_t>(table[p]));
      }
    }
  }
  flying_.push_back(std::move(flying));
}

// Tables of requests that the operation did not name may change, but then all bytes are looked at.
void HistoryJudge::note_suspicion(const Planned& planned) {
  const auto* step = std::get_if<call::Step>(&planned.call);
  if (step == nullptr) return;
  for (const RequestState& r : before_.requests) {
    const bool named =
        std::any_of(step->rows.begin(), step->rows.end(),
                    [&](const call::StepRow& row) { return row.request == r.request; });
    const RequestState* now = state_.find(r.request);
    if (!named && now != nullptr && now->tables != r.tables) check_everything_ = true;
  }
}

HistoryResult run_history(const Case& c, Engine& engine, const JudgeSettings& settings) {
  HistoryJudge judge(c, engine, settings);
  HistoryResult result;
  for (const Op& op : c.ops) {
    result.finding = judge.perform(op);
    if (result.finding) break;
  }
  if (!result.finding) result.finding = judge.finish();
  result.stats = judge.stats();
  result.records = judge.records();
  result.happened = judge.happened();
  return result;
}

}  // namespace kv
