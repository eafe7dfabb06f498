#include "harness/case/timeline.h"

#include "harness/case/operations.h"
#include "harness/case/pages.h"
#include "harness/case/validate.h"
#include "harness/core/check.h"

namespace kv {
namespace {

// Where the real slots lie, found from both ends: PAD runs are short, sequences may not be.
void set_hull(const Sequence& sequence, PlannedRow& row) {
  if (sequence.real_tokens == 0) return;
  const std::vector<Slot>& slots = sequence.slots;
  uint32_t begin = 0, end = static_cast<uint32_t>(slots.size());
  while (slots[begin].pad) ++begin;
  while (slots[end - 1].pad) --end;
  row.key_begin = begin;
  row.key_end = end;
  row.holes = end - begin != sequence.real_tokens;
}

}  // namespace

Timeline::Timeline(const Case& c) : case_(&c), streams_(c.data.seed), pool_(c.pool, c.data.seed) {}

Result<Timeline> Timeline::create(const Case& c) {
  KV_RETURN_IF_ERROR(check_case(c));
  KV_RETURN_IF_ERROR(check_kernel_level(c));
  KV_RETURN_IF_ERROR(check_operations(c));
  return Timeline(c);
}

PlannedStep Timeline::apply(uint32_t index) {
  KV_CHECK(index == next_op_ && index < case_->ops.size(), "operations are applied once, in order");
  ++next_op_;
  return std::visit(
      [this](const auto& op) -> PlannedStep {
        using Operation = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Operation, op::Step>) {
          return apply_step(op);
        } else if constexpr (requires { this->apply_op(op); }) {
          apply_op(op);
        } else {
          KV_CHECK(false, "Timeline::create must have refused this operation");
        }
        return {};
      },
      case_->ops[index]);
}

const Sequence& Timeline::sequence(RequestId request) const {
  const auto found = sequences_.find(request);
  KV_CHECK(found != sequences_.end(), "the request is not live");
  return found->second;
}

void Timeline::apply_op(const op::Admit& admit) {
  streams_.admit(admit);
  Sequence sequence;
  sequence.request = admit.request;
  sequence.position_offset = admit.position_offset;
  sequence.path = streams_.root(admit.request);
  sequences_.emplace(admit.request, std::move(sequence));
}

void Timeline::release(RequestId request) {
  const auto found = sequences_.find(request);
  KV_CHECK(found != sequences_.end(), "the request is not live");
  pool_.give_back(found->second.pages);
  sequences_.erase(found);
}

PlannedStep Timeline::apply_step(const op::Step& step) {
  PlannedStep planned{.op_index = next_op_ - 1, .rows = {}};
  planned.rows.reserve(step.rows.size());
  for (const op::StepRow& row : step.rows) {
    const auto found = sequences_.find(row.request);
    KV_CHECK(found != sequences_.end(), "the request is not live");
    append(found->second, row);
    PlannedRow plan;
    plan.request = row.request;
    plan.batch_slot = static_cast<uint32_t>(planned.rows.size());
    plan.append_slots = row.pad_left + row.append + row.pad_right;
    plan.queries = row.queries;
    plan.kv_length = static_cast<uint32_t>(found->second.slots.size());
    plan.tree_parents = row.tree_parents;
    set_hull(found->second, plan);
    planned.rows.push_back(std::move(plan));
  }
  return planned;
}

void Timeline::append(Sequence& sequence, const op::StepRow& row) {
  const auto next_position = [&] {
    return sequence.position_offset + static_cast<int64_t>(sequence.real_tokens);
  };
  const auto append_pads = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const auto slot = static_cast<int64_t>(sequence.slots.size());
      sequence.slots.push_back(
          {.pad = true,
           .history = tokenless_history(case_->data.seed, sequence.request, slot),
           .position = next_position()});
    }
  };
  append_pads(row.pad_left);
  streams_.extend(
      sequence.request, sequence.real_tokens, row.append, sequence.path, [&](uint64_t history) {
        sequence.slots.push_back({.history = history,
                                  .position = next_position(),
                                  .previous = sequence.real_tokens == 0 ? 0 : sequence.path});
        sequence.path = history;
        ++sequence.real_tokens;
      });
  append_pads(row.pad_right);
  const size_t pages = pages_for(sequence.slots.size(), case_->pool.page_slots);
  while (sequence.pages.size() < pages) sequence.pages.push_back(pool_.take());
}

Slot slot_or_tokenless(const Case& c, const Sequence& sequence, int64_t slot) {
  if (slot >= 0) return sequence.slots.at(static_cast<size_t>(slot));
  return {.history = tokenless_history(c.data.seed, sequence.request, slot),
          .position = sequence.position_offset + slot};
}

}  // namespace kv
