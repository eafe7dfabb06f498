// A step: placed by the cache, projected by the model, run by the store.
#include <algorithm>

#include "kvattn/engine.h"

namespace kvattn {

Status Engine::check_tree(const EngineRow& row, bool draft) const {
  const RequestId request = row.append.handle.request;
  KVATTN_RETURN_IF_ERROR(check_no_branches("step", request));
  const int64_t slots = std::ssize(row.tree_parents);
  if (slots == 0) return {};
  if (draft) return unsupported("step: expected chains in the draft model, got a tree");
  if (slots != std::ssize(row.append.tokens) || slots != row.append.speculative.value) {
    return refused("step: request ", index_of(request), ": expected a tree of speculative tokens");
  }
  if (slots > kTreeSlotsMax) {
    return unsupported("step: expected a tree of at most ", kTreeSlotsMax, " slots, got ", slots);
  }
  for (int64_t i = 0; i < slots; ++i) {
    if (row.tree_parents[i] < -1 || row.tree_parents[i] >= i) {
      return refused("step: request ", index_of(request), ": expected a parent before token ", i,
                     ", got ", row.tree_parents[i]);
    }
  }
  return {};
}

void Engine::keep_trees(const EngineStep& step) {
  for (const EngineRow& row : step.rows) {
    if (row.tree_parents.empty()) continue;
    trees_.push_back({.request = row.append.handle.request,
                      .begin = row.append.handle.length.value,
                      .parents = {row.tree_parents.begin(), row.tree_parents.end()}});
  }
}

Status Engine::check_step(const EngineStep& step) const {
  if (step.draft && !draft_) return refused("step: there is no draft model");
  const PagedCacheConfig& c = side(step.draft).cache.config();
  if (std::ssize(step.rows) > c.batch_slots) {
    return refused("step: expected at most ", c.batch_slots, " rows, got ", step.rows.size());
  }
  int64_t layers = 0;
  for (const LayerGroup& group : c.groups) layers += group.layers;
  if (!step.results.empty() && std::ssize(step.results) != layers) {
    return refused("step: expected results for ", layers, " layers or for none, got ",
                   step.results.size());
  }
  for (const EngineRow& row : step.rows) {
    const int64_t length = row.append.handle.length.value + std::ssize(row.append.tokens);
    const int64_t most = std::min(length, c.step_slots_max.value);
    if (row.queries < 0 || row.queries > most) {
      return refused("step: request ", index_of(row.append.handle.request), ": expected 0 to ",
                     most, " queries, got ", row.queries);
    }
    KVATTN_RETURN_IF_ERROR(check_tree(row, step.draft));
    if (row.release_before_layer < 0 || row.release_before_layer >= std::max<int64_t>(layers, 1)) {
      return refused("step: request ", index_of(row.append.handle.request),
                     ": expected a release before layer 1 to ", layers - 1, " or none, got ",
                     row.release_before_layer);
    }
    if (std::ssize(row.append.tokens) > c.step_slots_max.value) {
      return refused("step: request ", index_of(row.append.handle.request), ": expected at most ",
                     c.step_slots_max, " tokens, got ", row.append.tokens.size());
    }
  }
  return {};
}

// Rows of the Q tensor: one after the other, or in places as wide as the widest request, from whose
// left or right edge the PAD rows come.
Batch Engine::make_batch(const EngineStep& step) {
  rows_.clear();
  Batch batch{.attends = !step.results.empty()};
  int64_t widest = 0;
  for (const EngineRow& row : step.rows) widest = std::max(widest, row.queries);
  for (const EngineRow& row : step.rows) {
    const int64_t begin = static_cast<int64_t>(rows_.size()) * widest;
    const int64_t pad_left = step.layout == BatchLayout::kPadLeft ? widest - row.queries : 0;
    const bool is_ragged = step.layout == BatchLayout::kRagged;
    rows_.push_back({.request = row.append.handle.request,
                     .position_offset = row.append.handle.position_offset,
                     .first_slot = row.append.handle.length.value,
                     .appended = std::ssize(row.append.tokens),
                     .queries = batch.attends ? row.queries : 0,
                     .append_begin = batch.appended,
                     .query_begin = is_ragged ? batch.queries : begin + pad_left,
                     .tree_parents = row.tree_parents});
    batch.appended += std::ssize(row.append.tokens);
    batch.queries += is_ragged ? rows_.back().queries : batch.attends ? widest : 0;
  }
  batch.rows = rows_;
  return batch;
}

void Engine::place_rows(const Side& side, const EngineStep& step) {
  const auto groups = static_cast<int32_t>(side.cache.config().groups.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Handle& handle = step.rows[i].append.handle;
    for (int32_t g = 0; g < groups; ++g) {
      rows_[i].tables[g] = side.cache.table(handle, Group{g});
      rows_[i].kept_from[g] = side.cache.kept_from(handle, Group{g}).value;
    }
  }
}

Status Engine::release_before(int32_t layer, const EngineStep& step) {
  for (const EngineRow& row : step.rows) {
    if (row.release_before_layer != layer || layer == 0) continue;
    KVATTN_RETURN_IF_ERROR(forget(row.append.handle.request));
  }
  return {};
}

Status Engine::run(Side& side, const EngineStep& step, const Batch& batch) {
  StatusOr<StepTensors> tensors = side.store->begin(batch);
  if (!tensors.ok()) return tensors.status();
  int32_t layer = 0;
  for (const LayerGroup& group : side.cache.config().groups) {
    for (int32_t i = 0; i < group.layers; ++i, ++layer) {
      KVATTN_RETURN_IF_ERROR(release_before(layer, step));
      KVATTN_RETURN_IF_ERROR(model_->project({.layer = layer,
                                              .draft = step.draft,
                                              .batch = &batch,
                                              .tensors = *tensors,
                                              .store = side.store.get()}));
      KVATTN_RETURN_IF_ERROR(side.store->append(layer));
      if (batch.attends) KVATTN_RETURN_IF_ERROR(side.store->attend(layer, step.results[layer]));
    }
  }
  return {};
}

StatusOr<StepNumber> Engine::step(const EngineStep& step) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  KVATTN_RETURN_IF_ERROR(check_step(step));
  Side& s = side(step.draft);
  appends_.clear();
  for (const EngineRow& row : step.rows) {
    appends_.push_back(row.append);
    appends_.back().branches = !row.tree_parents.empty();
  }
  KVATTN_RETURN_IF_ERROR(s.cache.check_step(appends_));
  const Batch batch = make_batch(step);
  KVATTN_RETURN_IF_ERROR(s.store->check(batch));
  StatusOr<LaunchedStep> launched = s.cache.step(appends_);
  if (!launched.ok()) return launched.status();
  KVATTN_RETURN_IF_ERROR(copy(s, launched->copies));
  place_rows(s, step);
  keep_trees(step);
  KVATTN_RETURN_IF_ERROR(broken(run(s, step, batch)));
  KVATTN_RETURN_IF_ERROR(broken(s.store->mark(launched->number)));
  launched_ = static_cast<StepNumber>(index_of(launched_) + 1);
  flying_.push_back({.number = launched_, .step = launched->number, .draft = step.draft});
  while (std::ssize(flying_) > config_.async_depth) KVATTN_RETURN_IF_ERROR(complete_oldest());
  return launched_;
}

std::vector<StepNumber> Engine::steps_in_flight(bool draft) const {
  std::vector<StepNumber> numbers;
  for (const Flying& f : flying_) {
    if (f.draft == draft) numbers.push_back(f.number);
  }
  return numbers;
}

Status Engine::complete_oldest() {
  const Flying oldest = flying_.front();
  flying_.erase(flying_.begin());
  Side& s = side(oldest.draft);
  KVATTN_RETURN_IF_ERROR(broken(s.store->wait(oldest.step)));
  return broken(s.cache.complete(oldest.step));
}

Status Engine::complete(StepNumber step) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  if (std::ranges::find(flying_, step, &Flying::number) == flying_.end()) {
    return refused("complete: step ", index_of(step), " is not in flight");
  }
  while (!flying_.empty() && flying_.front().number <= step) {
    KVATTN_RETURN_IF_ERROR(complete_oldest());
  }
  return {};
}

}  // namespace kvattn
