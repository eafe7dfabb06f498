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

}  // namespace

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
