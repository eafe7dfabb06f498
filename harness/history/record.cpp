// What an operation did to the pages, for those who explain.
#include <fmt/format.h>

#include <algorithm>

#include "harness/history/judge.h"

namespace kv {
namespace {

void add_rows(const call::Step& step, const EngineState& state, std::vector<PageWrite>& writes) {
  const uint64_t page_slots = state.page_slots;
  for (const call::StepRow& row : step.rows) {
    const RequestState* r = state.find(row.request);
    if (r == nullptr) continue;
    const uint64_t end = row.length + row.append;
    for (const auto& table : r->tables) {
      for (uint64_t slot = row.length; slot < end;) {
        const uint64_t p = slot / page_slots, next = std::min(end, (p + 1) * page_slots);
        if (p < table.size() && table[p] >= 0) {
          writes.push_back(
              {.page = static_cast<uint32_t>(table[p]),
               .first_slot = slot % page_slots,
               .slots = next - slot,
               .by = fmt::format("request {}, slots {} to {}", row.request.value, slot, next - 1)});
        }
        slot = next;
      }
    }
  }
}

std::vector<uint64_t> tokens_of(const std::vector<StoredToken>& slots) {
  std::vector<uint64_t> tokens;
  for (const StoredToken& slot : slots) tokens.push_back(slot.token);
  return tokens;
}

/// What would bring the request's content about.
call::Admit content_of(const ModelRequest& r) {
  return {.request = r.request,
          .owner = r.owner,
          .side_input = r.side_input,
          .tokens = tokens_of(r.slots),
          .histories = {},
          .previous = {},
          .slots_max = r.slots_max,
          .position_offset = r.position_offset};
}

}  // namespace

// The model has applied it.
void HistoryJudge::keep(const Op& op, const Planned& planned) {
  if (std::holds_alternative<op::FailAllocation>(op)) return;
  Happened kept{.op_index = op_index_, .op = op, .told = {}};
  if (const auto* admit = std::get_if<call::Admit>(&planned.call)) {
    kept.told.tokens = {admit->tokens};
  } else if (const auto* step = std::get_if<call::Step>(&planned.call)) {
    auto& rows = std::get<op::Step>(kept.op).rows;
    rows.clear();
    for (const call::StepRow& row : step->rows) {
      const ModelRequest* r = model_.find(row.request);
      rows.push_back({.request = row.request,
                      .append = row.append,
                      .queries = row.queries,
                      .tree_parents = row.tree_parents,
                      .speculative = row.speculative,
                      .cancel_before_layer = row.cancel_before_layer});
      kept.told.tokens.push_back(r == nullptr  ? model_.tokens_of_gone(row.request)
                                 : step->draft ? tokens_of(r->draft)
                                               : tokens_of(r->slots));
      kept.told.tokens.back().resize(row.length + row.append);
    }
  } else if (const auto* fork = std::get_if<call::Fork>(&planned.call)) {
    kept.contents = {content_of(*model_.find(fork->child))};
  } else if (const auto* restore = std::get_if<call::Restore>(&planned.call)) {
    kept.contents = {content_of(*model_.find(restore->admission.request))};
  } else if (const auto* reorder = std::get_if<call::Reorder>(&planned.call)) {
    for (const RequestId beam : reorder->beams) {
      kept.contents.push_back(content_of(*model_.find(beam)));
    }
  }
  happened_.push_back(std::move(kept));
}

void HistoryJudge::record(const Planned& planned, const Answer& answer) {
  OpRecord record{.op_index = op_index_,
                  .call = describe(planned.call),
                  .answer = std::string(status_name(answer.status)),
                  .requests = requests_of(planned.call),
                  .state = state_};
  if (!answer.message.empty()) record.answer += ": " + answer.message;
  const auto* step = std::get_if<call::Step>(&planned.call);
  if (step != nullptr && !step->draft && answer.status == CallStatus::kOk) {
    add_rows(*step, state_, record.writes);
  }
  if (answer.status == CallStatus::kOk) {
    for (const SlotsCopied& copy : state_.copies) {
      record.writes.push_back(
          {.page = copy.to_page,
           .first_slot = copy.to_slot,
           .slots = copy.slots,
           .by = fmt::format("a copy of slots {} to {} of page {}", copy.from_slot,
                             copy.from_slot + copy.slots - 1, copy.from_page)});
    }
  }
  records_.push_back(std::move(record));
}

}  // namespace kv
