// Which call an operation is, and what an engine may answer in the request's state.
#include <algorithm>
#include <set>

#include "harness/case/pages.h"
#include "harness/history/budget_checks.h"
#include "harness/history/model.h"
#include "harness/history/token_path.h"

namespace kv {
namespace {

Planned lawful(Call call) { return {.call = std::move(call)}; }
Planned if_room(Call call) { return {.call = std::move(call), .expect = Expect::kSuccessOrNoRoom}; }
Planned unlawful(Call call, const char* why) {
  return {.call = std::move(call), .expect = Expect::kRefusal, .why = why};
}
Planned unknown(Call call) { return {.call = std::move(call), .expect = Expect::kAnything}; }

constexpr const char* kNotActive = "the request is not active";
constexpr const char* kNotThere = "the request does not exist";
constexpr const char* kThereAlready = "the request exists already";
constexpr const char* kBranches = "a tree waits for one of its paths";

}  // namespace

Model::Plan Model::plan_op(const op::Admit& admit) {
  const EngineLevel& e = engine();
  call::Admit call{.request = admit.request,
                   .owner = admit.owner,
                   .side_input = admit.side_input,
                   .slots_max = admit.slots_max == 0 ? e.context_limit : admit.slots_max,
                   .position_offset = admit.position_offset};
  if (told_ != nullptr) {
    call.tokens = told_->tokens.at(0);
  } else if (admit.prefix_of) {
    const ModelRequest* source = find(*admit.prefix_of);
    const auto& stream = source != nullptr ? source->stream : streams_[*admit.prefix_of];
    const uint64_t shared = std::min<uint64_t>(admit.prefix_tokens, stream.size());
    call.tokens.assign(stream.begin(), stream.begin() + static_cast<ptrdiff_t>(shared));
  }
  const bool exists = find(admit.request) != nullptr;
  while (call.tokens.size() < admit.prompt_tokens) call.tokens.push_back(make_token(admit.request));
  uint64_t history = path_root(case_.data.seed, admit.side_input);
  for (uint64_t slot = 0; slot < call.tokens.size(); ++slot) {
    call.previous.push_back(slot == 0 ? 0 : history);
    history = path_next(history, call.tokens[slot], slot);
    call.histories.push_back(history);
  }
  const uint64_t slots_max = call.slots_max;
  if (exists) return unlawful(std::move(call), kThereAlready);
  if (slots_max > e.context_limit) return unlawful(std::move(call), "past the context limit");
  if (admit.prompt_tokens > slots_max) {
    return unlawful(std::move(call), "the prompt is longer than the request may become");
  }
  const uint64_t pages = pages_for(slots_max, case_.pool.page_slots);
  if (pages * groups_.size() > budget_of(case_.pool))
    return unknown(std::move(call));  // it may never fit
  return if_room(std::move(call));
}

Model::Plan Model::plan_op(const op::Append& append) {
  ModelRequest* r = find_mutable(append.request);
  if (r == nullptr) return std::nullopt;
  const uint64_t room = r->slots_max - std::min<uint64_t>(r->slots_max, r->stream.size());
  extend_stream(*r, r->stream.size() + std::min(room, append.tokens));
  return std::nullopt;
}

Model::Plan Model::plan_op(const op::Fork& fork) {
  const call::Fork call{fork.parent, fork.child};
  if (!is_active(fork.parent)) return unlawful(call, kNotActive);
  if (has_branches(*find(fork.parent))) return unlawful(call, kBranches);
  if (find(fork.child) != nullptr) return unlawful(call, kThereAlready);
  return if_room(call);
}

Model::Plan Model::plan_op(const op::Reorder& reorder) {
  const call::Reorder call{reorder.beams, reorder.sources};
  const std::set<RequestId> beams(call.beams.begin(), call.beams.end());
  if (beams.size() < call.beams.size()) return unlawful(call, "a beam occurs twice");
  for (const RequestId beam : call.beams) {
    if (!is_active(beam)) return unlawful(call, kNotActive);
    if (has_branches(*find(beam))) return unlawful(call, kBranches);
    if (find(beam)->owner != find(call.beams[0])->owner) {
      return unlawful(call, "beams of two owners");
    }
  }
  for (const RequestId source : call.sources) {
    if (!beams.contains(source)) return unlawful(call, "a source is no beam");
  }
  return if_room(call);  // an engine may copy
}

Model::Plan Model::plan_op(const op::Truncate& truncate) {
  const call::Truncate call{truncate.request, truncate.length};
  if (!is_active(call.request)) return unlawful(call, kNotActive);
  if (call.length > find(call.request)->slots.size()) return unlawful(call, "it is not that long");
  return has_windows() ? unknown(call) : lawful(call);  // a window may have let slots go
}

Model::Plan Model::plan_op(const op::Shift& shift) {
  const call::Shift call{shift.request, shift.begin, shift.end};
  if (!is_active(call.request)) return unlawful(call, kNotActive);
  if (call.begin >= call.end) return unlawful(call, "an empty range");
  const ModelRequest& r = *find(call.request);
  if (call.end > r.slots.size()) return unlawful(call, "it is not that long");
  if (has_branches(r) && call.begin < r.tree_begin) return unlawful(call, kBranches);
  const uint64_t page = case_.pool.page_slots;
  const bool whole_pages = call.begin % page == 0 && call.end % page == 0;
  if (case_.shape.kv_scale == KvScale::kPage && !whole_pages) {
    return unlawful(call, "slots would come under the scale of another page");
  }
  return has_windows() ? unknown(call) : if_room(call);
}

Model::Plan Model::plan_op(const op::Cancel& cancel) {
  const call::Cancel call{cancel.request};
  return find(call.request) == nullptr ? unlawful(call, kNotThere) : lawful(call);
}

Model::Plan Model::plan_op(const op::Finish& finish) {
  const call::Finish call{finish.request};
  return is_active(call.request) ? lawful(call) : unlawful(call, kNotActive);
}

Model::Plan Model::plan_op(const op::Preempt& preempt) {
  const call::Preempt call{preempt.request, preempt.swap};
  if (!is_active(call.request)) return unlawful(call, kNotActive);
  if (has_branches(*find(call.request))) return unlawful(call, kBranches);
  return preempt.swap ? if_room(call) : lawful(call);
}

Model::Plan Model::plan_op(const op::Resume& resume) {
  const call::Resume call{resume.request};
  const ModelRequest* r = find(call.request);
  if (r == nullptr) return unlawful(call, kNotThere);
  if (r->life == Life::kActive) return unlawful(call, "the request is active");
  return if_room(call);
}

Model::Plan Model::plan_op(const op::Evict& evict) { return lawful(call::Evict{evict.pages}); }

Model::Plan Model::plan_op(const op::Defrag&) {
  if (!in_flight_.empty()) return unlawful(call::Defrag{}, "a step is in flight");
  return lawful(call::Defrag{});
}

Model::Plan Model::plan_op(const op::Save& save) {
  const call::Save call{save.request};
  const ModelRequest* r = find(call.request);
  if (r == nullptr) return unlawful(call, kNotThere);
  if (has_branches(*r)) return unlawful(call, kBranches);
  return r->life == Life::kActive ? lawful(call) : unknown(call);
}

Model::Plan Model::plan_op(const op::Restore& restore) {
  const auto found = saved_.find(restore.saved);
  if (found == saved_.end()) return std::nullopt;
  const ModelRequest& content = found->second.content;
  call::Restore call{.admission = {.request = restore.request,
                                   .owner = content.owner,
                                   .side_input = content.side_input,
                                   .slots_max = content.slots_max,
                                   .position_offset = content.position_offset},
                     .bytes = found->second.bytes};
  if (find(restore.request) != nullptr) return unlawful(std::move(call), kThereAlready);
  Planned planned = if_room(std::move(call));
  planned.saved = restore.saved;
  return planned;
}

Model::Plan Model::plan_op(const op::Complete& complete) {
  if (complete.step >= in_flight_.size()) {
    return unlawful(call::Complete{launched_ + 1 + complete.step}, "the step is not in flight");
  }
  return lawful(call::Complete{in_flight_[complete.step].number});
}

Model::Plan Model::plan_op(const op::FailAllocation& fail) {
  return lawful(call::FailAllocation{fail.nth});
}

}  // namespace kv
