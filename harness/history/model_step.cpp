// Steps: which tokens the rows append, and where they stand.
#include <algorithm>
#include <set>

#include "harness/core/check.h"
#include "harness/history/model.h"

namespace kv {
namespace {

std::vector<StoredToken>& cache_of(ModelRequest& r, bool draft) {
  return draft ? r.draft : r.slots;
}
const std::vector<StoredToken>& cache_of(const ModelRequest& r, bool draft) {
  return draft ? r.draft : r.slots;
}

// A row brings its request to what the case has asked for so far; the draft model appends as asked.
uint32_t append_count(const ModelRequest& r, const op::StepRow& row, const op::Step& step,
                      uint32_t tokens_max) {
  if (step.draft) return std::min(row.append, tokens_max);
  const uint64_t wanted = r.scheduled + row.append;
  const uint64_t missing = wanted - std::min<uint64_t>(wanted, r.slots.size());
  return static_cast<uint32_t>(std::min<uint64_t>(missing, tokens_max));
}

}  // namespace

namespace {

bool is_chain(const std::vector<int32_t>& parents) {
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] != static_cast<int32_t>(i) - 1) return false;
  }
  return true;
}

}  // namespace

const char* Model::why_no_row(const ModelRequest& r, const op::StepRow& row, bool draft) {
  if (has_branches(r)) return "a tree waits for one of its paths";
  if (!is_chain(row.tree_parents) && row.speculative < row.append) {
    return "a tree whose tokens are not all speculative";
  }
  if (cache_of(r, draft).size() + row.append > r.slots_max) return "past the request's limit";
  return nullptr;
}

// Where the request has gone another way, no row can bring it back.
bool Model::follow(ModelRequest& r, const std::vector<uint64_t>& target, op::StepRow& row,
                   bool draft) {
  const auto& slots = cache_of(r, draft);
  if (slots.size() > target.size()) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].token != target[i]) return false;
  }
  const auto [mine, theirs] =
      std::mismatch(r.stream.begin(), r.stream.end(), target.begin(), target.end());
  const auto common = static_cast<size_t>(mine - r.stream.begin());
  if (common < std::max(r.slots.size(), r.draft.size()) && theirs != target.end()) return false;
  if (theirs != target.end()) {
    r.stream.resize(common);
    r.stream.insert(r.stream.end(), theirs, target.end());
  }
  const uint64_t missing = target.size() - slots.size();
  row.append = static_cast<uint32_t>(std::min<uint64_t>(missing, engine().step_tokens_max));
  if (row.append < missing) row.speculative = 0;  // there is more to come before that
  return true;
}

// `row.append` and `row.queries` are final here.
call::StepRow Model::plan_row(ModelRequest& r, const op::StepRow& row, bool draft) {
  const auto& slots = cache_of(r, draft);
  const uint64_t length = slots.size();
  call::StepRow call{.request = r.request,
                     .handle = r.handle,
                     .length = length,
                     .append = row.append,
                     .queries = row.queries,
                     .speculative = row.speculative,
                     .dtype = case_.shape.kv_dtype,
                     .tree_parents = row.tree_parents,
                     .cancel_before_layer = row.cancel_before_layer};
  extend_stream(r, length + row.append);
  for (uint64_t i = length; i < length + row.append; ++i) call.tokens.push_back(r.stream[i]);
  const uint64_t told = std::max(row.append, row.queries);
  const std::vector<StoredToken> appended =
      appended_tokens(r, slots, call.tokens, row.tree_parents, case_.data.seed);
  for (uint64_t i = length + row.append - told; i < length + row.append; ++i) {
    const StoredToken& token = i < length ? slots[i] : appended[i - length];
    call.histories.push_back(token.history);
    call.previous.push_back(token.previous);
  }
  return call;
}

std::optional<Planned> Model::plan_op(const op::Step& step) {
  Planned planned;
  call::Step call{.draft = step.draft};
  if (step.padded_layout) call.layout = step.padded_left ? KV_LAYOUT_PAD_LEFT : KV_LAYOUT_PAD_RIGHT;
  std::set<RequestId> seen;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    const op::StepRow& asked = step.rows[i];
    ModelRequest* r = find_mutable(asked.request);
    const bool active = r != nullptr && r->life == Life::kActive;
    if (!active && told_ != nullptr) continue;
    if (!active) {
      planned.why = "a row's request is not active";
      call.rows.push_back({.request = asked.request,
                           .handle = r == nullptr ? old_handles_[asked.request] : r->handle,
                           .append = 1,
                           .dtype = case_.shape.kv_dtype,
                           .tokens = {1},
                           .histories = {1},
                           .previous = {0}});
      planned.scheduled.push_back(0);
      continue;
    }
    op::StepRow row = asked;
    if (told_ != nullptr && !follow(*r, told_->tokens.at(i), row, step.draft)) continue;
    if (told_ == nullptr) row.append = append_count(*r, asked, step, engine().step_tokens_max);
    row.speculative = std::min(row.speculative, row.append);
    if (row.append != asked.append) row.tree_parents.clear();
    // Earlier slots may have expired.
    const uint64_t most = has_windows() ? row.append : cache_of(*r, step.draft).size() + row.append;
    row.queries =
        static_cast<uint32_t>(std::min<uint64_t>({row.queries, most, engine().step_tokens_max}));
    if (row.append == 0 && row.queries == 0) continue;
    if (!seen.insert(asked.request).second) planned.why = "a request has two rows";
    if (const char* why = why_no_row(*r, row, step.draft)) planned.why = why;
    const uint32_t layers = step.draft ? engine().draft_layers : case_.shape.layers;
    if (row.cancel_before_layer >= std::max(layers, 1u)) {
      planned.why = "no layer is left in which it could be cancelled";
    }
    call.wants_outputs |= row.queries > 0;
    call.rows.push_back(plan_row(*r, row, step.draft));
    planned.scheduled.push_back(std::max<uint64_t>(r->scheduled + asked.append, r->slots.size()));
  }
  if (call.rows.empty()) return std::nullopt;
  if (step.draft && engine().draft_layers == 0) planned.why = "there is no draft model";
  planned.expect = *planned.why == '\0' ? Expect::kSuccessOrNoRoom : Expect::kRefusal;
  planned.call = std::move(call);
  return planned;
}

void Model::apply_row(const call::StepRow& row, bool draft) {
  ModelRequest* r = find_mutable(row.request);
  KV_CHECK(r != nullptr, "a row of no request must be refused");
  auto& slots = cache_of(*r, draft);
  const uint64_t begin = slots.size();
  if (!draft) r->tree_begin = begin;  // what lies before is a path, or the row is refused
  if (row.tree_parents.empty()) {
    const size_t first = row.histories.size() - row.append;  // the row told of them
    for (size_t i = 0; i < row.append; ++i) {
      slots.push_back({.token = row.tokens[i],
                       .history = row.histories[first + i],
                       .previous = row.previous[first + i],
                       .position = r->position_offset + static_cast<int64_t>(begin + i)});
    }
  } else {
    const auto appended = appended_tokens(*r, slots, row.tokens, row.tree_parents, case_.data.seed);
    slots.insert(slots.end(), appended.begin(), appended.end());
  }
  if (!draft && row.append > 0) r->settled = slots.size() - row.speculative;
  if (row.cancel_before_layer == 0) return touch(row.request, begin, slots.size(), draft);
  forget(row.request);
}

void Model::apply_call(const call::Step& step, const Planned& planned, const Answer&) {
  FlyingStep flying{.number = ++launched_, .draft = step.draft};
  for (size_t i = 0; i < step.rows.size(); ++i) {
    apply_row(step.rows[i], step.draft);
    flying.requests.push_back(step.rows[i].request);
    ModelRequest* r = find_mutable(step.rows[i].request);
    if (!step.draft && r != nullptr) r->scheduled = planned.scheduled[i];
  }
  in_flight_.push_back(std::move(flying));
  while (in_flight_.size() > engine().async_depth) in_flight_.erase(in_flight_.begin());
}

}  // namespace kv
