#include "harness/history/model.h"

#include <algorithm>

#include "harness/core/check.h"
#include "harness/history/token_path.h"

namespace kv {

namespace {

/// A slot and what lies before it, of a request.
struct Place {
  uint64_t slot = 0;
  uint64_t before = 0;  // history
};

StoredToken stored_at(const ModelRequest& r, Place place, uint64_t token) {
  return {.token = token,
          .history = path_next(place.before, token, place.slot),
          .previous = place.slot == 0 ? 0 : place.before,
          .position = r.position_offset + static_cast<int64_t>(place.slot)};
}

Place place_behind(const ModelRequest& r, const std::vector<StoredToken>& slots, uint64_t seed) {
  return {.slot = slots.size(),
          .before = slots.empty() ? path_root(seed, r.side_input) : slots.back().history};
}

}  // namespace

StoredToken next_stored(const ModelRequest& r, const std::vector<StoredToken>& slots,
                        uint64_t token, uint64_t data_seed) {
  return stored_at(r, place_behind(r, slots, data_seed), token);
}

std::vector<StoredToken> appended_tokens(const ModelRequest& r,
                                         const std::vector<StoredToken>& slots,
                                         const std::vector<uint64_t>& tokens,
                                         const std::vector<int32_t>& parents, uint64_t data_seed) {
  const Place root = place_behind(r, slots, data_seed);
  std::vector<StoredToken> appended;
  std::vector<Place> behind;  // each appended token
  for (size_t i = 0; i < tokens.size(); ++i) {
    // The path of its ancestors alone decides what it is.
    const bool is_first = parents.empty() ? i == 0 : parents[i] < 0;
    const size_t parent = parents.empty() ? i - 1 : static_cast<size_t>(parents[i]);
    const Place place = is_first ? root : behind[parent];
    appended.push_back(stored_at(r, place, tokens[i]));
    behind.push_back({.slot = place.slot + 1, .before = appended.back().history});
  }
  return appended;
}

bool has_branches(const ModelRequest& r) {
  for (size_t i = std::max<size_t>(r.tree_begin, 1); i < r.slots.size(); ++i) {
    if (r.slots[i].previous != r.slots[i - 1].history) return true;
  }
  return false;
}

Model::Model(const Case& c, const ModelOptions& options)
    : case_(c), options_(options), groups_(cache_groups(c)) {
  KV_CHECK(c.engine.has_value(), "a case for the kernel level has no history");
}

std::optional<Planned> Model::plan(const Op& op, const Told* told) {
  told_ = told;
  return std::visit([this](const auto& o) { return plan_op(o); }, op);
}

void Model::apply(const Planned& planned, const Answer& answer) {
  touched_.clear();
  turned_.clear();
  if (answer.status != CallStatus::kOk) return;
  std::visit([&](const auto& c) { apply_call(c, planned, answer); }, planned.call);
}

const ModelRequest* Model::find(RequestId request) const {
  const auto found = requests_.find(request);
  return found == requests_.end() ? nullptr : &found->second;
}

ModelRequest* Model::find_mutable(RequestId request) {
  const auto found = requests_.find(request);
  return found == requests_.end() ? nullptr : &found->second;
}

bool Model::is_active(RequestId request) const {
  const ModelRequest* r = find(request);
  return r != nullptr && r->life == Life::kActive;
}

bool Model::has_windows() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const CacheGroup& group) { return group.window_left >= 0; });
}

uint64_t Model::make_token(RequestId request) {
  return fresh_token(case_.data.seed, request, made_up_[request]++);
}

void Model::extend_stream(ModelRequest& r, uint64_t length) {
  while (r.stream.size() < length) r.stream.push_back(make_token(r.request));
}

void Model::forget(RequestId request) {
  const auto found = requests_.find(request);
  if (options_.keep_gone) streams_[request] = std::move(found->second.stream);
  old_handles_[request] = found->second.handle;
  requests_.erase(found);
}

void Model::touch(RequestId request, uint64_t begin, uint64_t end, bool draft) {
  if (begin < end) touched_.push_back({request, draft, begin, end});
}

void Model::touch_all(const ModelRequest& r) {
  touch(r.request, 0, r.slots.size());
  touch(r.request, 0, r.draft.size(), true);
}

void Model::end_steps(uint64_t number) {
  std::erase_if(in_flight_, [number](const FlyingStep& step) { return step.number <= number; });
}

}  // namespace kv
