// Is an answer one that the contract allows? And what is left at the end.
#include <fmt/format.h>

#include <algorithm>

#include "harness/case/limits.h"
#include "harness/case/pages.h"
#include "harness/history/budget_checks.h"
#include "harness/history/judge.h"

namespace kv {
namespace {

constexpr RequestId kCanary{limits::kRequestIdMax - 1};
constexpr uint64_t kCanaryTokens = 3;
constexpr uint32_t kCanariesMax = 8;

std::string quoted(const Answer& answer) {
  return fmt::format("{}{}{}", status_name(answer.status), answer.message.empty() ? "" : ": ",
                     answer.message);
}

}  // namespace

MaybeFinding HistoryJudge::check_answer(const Planned& planned, const Answer& answer) const {
  const auto wrong = [](std::string message) {
    return HistoryFinding{.check = CheckClass::kAnswer, .message = std::move(message)};
  };
  const CallStatus status = answer.status;
  const bool refused = status == CallStatus::kRefused || status == CallStatus::kExhausted ||
                       status == CallStatus::kUnsupported;
  if (status != CallStatus::kOk && !refused)
    return wrong("expected no failure, got " + quoted(answer));
  if (refused && answer.message.empty()) {
    return wrong(fmt::format("{} without a sentence that says why", status_name(status)));
  }
  if (planned.expect == Expect::kRefusal && status != CallStatus::kRefused) {
    return wrong(fmt::format("expected KV_REFUSED ({}), got {}", planned.why, quoted(answer)));
  }
  const bool lawful =
      planned.expect == Expect::kSuccess || planned.expect == Expect::kSuccessOrNoRoom;
  if (lawful && (status == CallStatus::kRefused ||
                 (planned.expect == Expect::kSuccess && status == CallStatus::kExhausted))) {
    return wrong("expected the lawful call to succeed, got " + quoted(answer));
  }
  if (status == CallStatus::kExhausted && !model_.is_failing()) return check_no_room(planned);
  return std::nullopt;
}

// Where it is plain that there was room. What decides is counted generously; pages that a step in
// flight touches are no room yet.
MaybeFinding HistoryJudge::check_no_room(const Planned& planned) const {
  if (!model_.in_flight().empty()) return std::nullopt;
  const auto stuck = [](std::string message) {
    return HistoryFinding{.check = CheckClass::kProgress, .message = std::move(message)};
  };
  if (const auto* step = std::get_if<call::Step>(&planned.call); step != nullptr && !step->draft) {
    uint64_t needed = 0;
    for (const call::StepRow& row : step->rows) {
      const uint64_t slots = case_.pool.page_slots;
      needed += pages_for(row.length + row.append, slots) - pages_for(row.length, slots) + 1;
    }
    needed *= model_.groups().size();
    const uint64_t there = state_.free.size() + state_.cached.size();
    if (there < needed) return std::nullopt;
    return stuck(
        fmt::format("no room for a step of at most {} new pages, but {} are free and {} "
                    "cached",
                    needed, state_.free.size(), state_.cached.size()));
  }
  if (planned.expect != Expect::kSuccessOrNoRoom || !needs_room(planned.call)) return std::nullopt;
  return stuck(
      fmt::format("no room for a request, though {} are active, in {} batch slots, and "
                  "their worst cases and its own fit into the pool",
                  std::count_if(model_.requests().begin(), model_.requests().end(),
                                [](const auto& item) { return item.second.life == Life::kActive; }),
                  model_.engine().batch_slots));
}

// Whether the call adds an active request that has to find room.
bool HistoryJudge::needs_room(const Call& call) const {
  if (const auto* admit = std::get_if<call::Admit>(&call)) {
    return must_have_room(model_, admit->slots_max, true);
  }
  if (const auto* restore = std::get_if<call::Restore>(&call)) {
    return must_have_room(model_, restore->admission.slots_max, true);
  }
  if (const auto* resume = std::get_if<call::Resume>(&call)) {
    return must_have_room(model_, model_.find(resume->request)->slots_max, false);
  }
  const auto* fork = std::get_if<call::Fork>(&call);
  // A draft cache may be too small for a copy.
  const bool copies_target_only = model_.engine().draft_layers == 0;
  return fork != nullptr && copies_target_only &&
         must_have_room(model_, model_.find(fork->parent)->slots_max, true);
}

MaybeFinding HistoryJudge::check_admitted(const Planned& planned, const Answer& answer) {
  if (answer.status != CallStatus::kOk) return std::nullopt;
  const auto wrong = [](std::string message) {
    return HistoryFinding{.check = CheckClass::kLengths, .message = std::move(message)};
  };
  const auto length_is = [&](uint64_t want) -> MaybeFinding {
    if (answer.length == want) return std::nullopt;
    return wrong(fmt::format("expected {} slots, got {}", want, answer.length));
  };
  const auto length_up_to = [&](uint64_t most) -> MaybeFinding {
    if (answer.length <= most) return std::nullopt;
    return wrong(fmt::format("expected at most {} slots, got {}", most, answer.length));
  };
  const auto handle_is_new = [&]() -> MaybeFinding {
    if (answer.handle != 0 && handles_.insert(answer.handle).second) return std::nullopt;
    return wrong(fmt::format("expected a handle that no request ever had, got {}", answer.handle));
  };
  if (const auto* admit = std::get_if<call::Admit>(&planned.call)) {
    if (auto found = handle_is_new()) return found;
    return length_up_to(model_.engine().prefix_cache ? admit->tokens.size() : 0);
  }
  if (const auto* fork = std::get_if<call::Fork>(&planned.call)) {
    if (auto found = handle_is_new()) return found;
    return length_is(model_.find(fork->parent)->slots.size());
  }
  if (std::holds_alternative<call::Restore>(planned.call)) return handle_is_new();
  if (const auto* resume = std::get_if<call::Resume>(&planned.call)) {
    const ModelRequest& r = *model_.find(resume->request);
    return r.life == Life::kSwapped ? length_is(r.slots.size()) : length_up_to(r.stream.size());
  }
  if (std::holds_alternative<call::Step>(planned.call)) {
    if (answer.step == model_.launched() + 1) return std::nullopt;
    return wrong(
        fmt::format("expected step number {}, got {}", model_.launched() + 1, answer.step));
  }
  return std::nullopt;
}

// What the model knows to be touched; of a step that copied pages (copy on write) all that its rows
// hold.
std::vector<Touched> HistoryJudge::touched_by(const Planned& planned, const Answer& answer) const {
  const auto* step = std::get_if<call::Step>(&planned.call);
  const bool copied = !(step != nullptr && step->draft ? draft_ : state_).copies.empty();
  if (step == nullptr || answer.status != CallStatus::kOk || !copied) return model_.touched();
  std::vector<Touched> all;
  for (const call::StepRow& row : step->rows) {
    all.push_back({row.request, step->draft, 0, row.length + row.append});
  }
  return all;
}

MaybeFinding HistoryJudge::check_bytes(const Planned& planned, const Answer& answer) {
  if (!model_.in_flight().empty()) {
    check_everything_ = true;  // when it has ended
    return std::nullopt;
  }
  if (check_everything_ || stats_.operations % settings_.everything_every == 0) {
    return check_all_bytes();
  }
  return check_slots(touched_by(planned, answer), false);
}

MaybeFinding HistoryJudge::check_slots(std::span<const Touched> touched, bool all_prefixes) {
  auto found = provenance_.check(model_, state_, {CacheKind::kTarget, touched, all_prefixes});
  if (!found && model_.engine().draft_layers > 0) {
    found = provenance_.check(model_, draft_, {CacheKind::kDraft, touched});
  }
  // Swapped bytes cannot be looked at, and may have been appended just before.
  const bool all_seen = std::ranges::none_of(
      model_.requests(), [](const auto& item) { return item.second.life == Life::kSwapped; });
  if (all_seen) provenance_.settle();
  return found;
}

MaybeFinding HistoryJudge::check_all_bytes() {
  check_everything_ = false;
  std::vector<Touched> all;
  for (const auto& [id, r] : model_.requests()) {
    all.push_back({id, false, 0, r.slots.size()});
    all.push_back({id, true, 0, r.draft.size()});
  }
  return check_slots(all, true);
}

MaybeFinding HistoryJudge::check_empty() const {
  const auto left = [](std::string message) {
    return HistoryFinding{.check = CheckClass::kLeak, .message = std::move(message)};
  };
  if (state_.free.size() != state_.page_count) {
    return left(fmt::format(
        "all requests are gone and everything is evicted: expected {} free "
        "pages, got {}, {} fenced, {} cached",
        state_.page_count, state_.free.size(), state_.fenced.size(), state_.cached.size()));
  }
  if (state_.host_free.size() != state_.host_page_count) {
    return left(fmt::format("all requests are gone: expected {} free host pages, got {}",
                            state_.host_page_count, state_.host_free.size()));
  }
  if (!state_.prefixes.empty()) {
    return left(
        fmt::format("everything is evicted: expected no prefixes, got {}", state_.prefixes.size()));
  }
  if (model_.engine().draft_layers > 0 && draft_.free.size() != draft_.page_count) {
    return left(fmt::format("all requests are gone: expected {} free draft pages, got {}",
                            draft_.page_count, draft_.free.size()));
  }
  return std::nullopt;
}

MaybeFinding HistoryJudge::finish() {
  settings_.keep_happened = false;
  const auto epilogue = [this](const Op& op) {
    MaybeFinding found = perform_now(op, nullptr);
    if (found) found->op_index = op_index_;
    take_stats();
    return found;
  };
  const auto finding = [this](MaybeFinding found) {
    if (auto device = heard(check_device())) found = std::move(device);
    if (found) found->op_index = op_index_;
    take_stats();
    return found;
  };
  if (auto found = epilogue(op::FailAllocation{0})) return found;
  while (!model_.in_flight().empty()) {
    if (auto found = epilogue(op::Complete{model_.in_flight().size() - 1})) return found;
  }
  if (auto found = heard(check_all_bytes())) return finding(found);
  while (!model_.requests().empty()) {
    if (auto found = epilogue(op::Cancel{model_.requests().begin()->first})) return found;
  }
  if (auto found = epilogue(op::Evict{case_.pool.page_count})) return found;
  if (auto found = heard(check_empty())) return finding(found);
  const uint64_t slots = std::min<uint64_t>(kCanaryTokens, model_.engine().context_limit);
  std::vector<Op> canary = {
      op::Admit{.request = kCanary, .prompt_tokens = slots, .slots_max = slots},
      op::Step{.rows = {{.request = kCanary, .append = static_cast<uint32_t>(slots)}}},
      op::Complete{0}};
  // In each of the other batch slots there is room, too.
  const uint32_t others = std::min(model_.engine().batch_slots, kCanariesMax) - 1;
  for (uint32_t i = 1; i <= others; ++i) {
    canary.emplace_back(op::Admit{.request = RequestId(kCanary.value - i), .slots_max = 1});
  }
  canary.emplace_back(op::Finish{kCanary});
  for (uint32_t i = 1; i <= others; ++i) {
    canary.emplace_back(op::Cancel{RequestId(kCanary.value - i)});
  }
  canary.emplace_back(op::Evict{case_.pool.page_count});
  for (const Op& op : canary) {
    const bool needless = std::holds_alternative<op::Complete>(op) && model_.in_flight().empty();
    if (needless) continue;
    if (auto found = epilogue(op)) return found;
  }
  return finding(heard(check_empty()));
}

}  // namespace kv
