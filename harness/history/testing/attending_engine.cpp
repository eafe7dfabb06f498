#include "harness/history/testing/attending_engine.h"

#include <algorithm>
#include <cmath>

namespace kv {

Answer AttendingEngine::perform(const Call& call) {
  Answer answer = plain_.perform(call);
  if (answer.status == CallStatus::kOk) remember(call);
  const auto* step = std::get_if<call::Step>(&call);
  if (step != nullptr && step->wants_outputs && answer.status == CallStatus::kOk) {
    attend(*step, answer.step);
  }
  return answer;
}

void AttendingEngine::remember(const Call& call) {
  const auto* truncate = std::get_if<call::Truncate>(&call);
  if (truncate != nullptr && wrong_ == Wrong::kAfterTruncate) marked_.insert(truncate->request);
  const auto* resume = std::get_if<call::Resume>(&call);
  if (resume != nullptr && wrong_ == Wrong::kAfterResume) marked_.insert(resume->request);
  const auto* restore = std::get_if<call::Restore>(&call);
  if (restore != nullptr && wrong_ == Wrong::kAfterRestore) {
    marked_.insert(restore->admission.request);
  }
  const auto* reorder = std::get_if<call::Reorder>(&call);
  for (size_t i = 0; reorder != nullptr && i < reorder->beams.size(); ++i) {
    const bool moved = reorder->beams[i] != reorder->sources[i];
    if (moved && wrong_ == Wrong::kAfterReorder) marked_.insert(reorder->beams[i]);
  }
  const auto* cancel = std::get_if<call::Cancel>(&call);
  const auto* finish = std::get_if<call::Finish>(&call);
  if (cancel != nullptr) marked_.erase(cancel->request);
  if (finish != nullptr) marked_.erase(finish->request);
  cancelled_ |= cancel != nullptr;
}

bool AttendingEngine::is_nudged(const call::Step& step, RequestId request) const {
  return marked_.contains(request) || (wrong_ == Wrong::kInCompany && step.rows.size() > 1) ||
         (wrong_ == Wrong::kAfterCancel && cancelled_);
}

void AttendingEngine::attend(const call::Step& step, uint64_t number) {
  auto& layers = outputs_[number].outputs;
  auto& lses = outputs_[number].lses;
  uint32_t layer = 0;
  std::vector<CacheGroup> groups = cache_groups(case_);
  if (step.draft) groups = {{.layers = case_.engine->draft_layers}};
  for (const CacheGroup& group : groups) {
    for (uint32_t l = 0; l < group.layers; ++l, ++layer) {
      layers.emplace_back();
      lses.emplace_back();
      std::vector<const call::StepRow*> rows;
      for (const call::StepRow& row : step.rows) rows.push_back(&row);
      if (wrong_ == Wrong::kOtherRow) std::reverse(rows.begin(), rows.end());
      for (const call::StepRow* row : rows) {
        if (row->cancel_before_layer > 0) {
          leave_out(*row, {layers.back(), lses.back()});
          continue;
        }
        for (uint32_t q = 0; q < row->queries; ++q) {
          attend_row(*row, q, {layer, step.draft}, group.window_left,
                     {layers.back(), lses.back(), is_nudged(step, row->request)});
        }
      }
    }
  }
  if (wrong_ == Wrong::kUnwritten) layers.back().back() = std::byte{0xFF};
  if (wrong_ == Wrong::kUnwritten) *(layers.back().end() - 2) = std::byte{0xFF};
  if (wrong_ == Wrong::kMissing) layers.pop_back();
}

// Of a request that was cancelled while the step ran; nobody reads it.
void AttendingEngine::leave_out(const call::StepRow& row, const Out& out) const {
  const Shape& s = case_.shape;
  const size_t heads = size_t{row.queries} * s.query_heads;
  out.output.resize(out.output.size() + heads * s.head_dim_v * dtype_bytes(s.output_dtype));
  out.lse.resize(out.lse.size() + heads);
}

void AttendingEngine::attend_row(const call::StepRow& row, uint32_t q, ContentLayer at,
                                 int64_t window, const Out& out) {
  const Shape& s = case_.shape;
  const int64_t slot = static_cast<int64_t>(row.length + row.append - row.queries + q);
  const int64_t begin = window < 0 ? 0 : std::max<int64_t>(0, slot - window);
  const int64_t end = slot + (wrong_ == Wrong::kNewestKey && slot > begin ? 0 : 1);
  const size_t told = row.histories.size() - row.queries + q;
  std::vector<SlotPlace> places;
  const auto first = static_cast<int64_t>(row.length);
  std::set<int64_t> ancestors;  // in a tree
  int64_t position = slot;
  if (!row.tree_parents.empty() && slot >= first) {
    position = first - 1;
    for (auto p = static_cast<int32_t>(slot - first); p >= 0; p = row.tree_parents[p]) {
      ancestors.insert(first + p);
      ++position;
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    if (!ancestors.empty() && j >= first && !ancestors.contains(j)) continue;
    places.push_back(
        {.holder = row.request.value, .slot = static_cast<uint64_t>(j), .layer = at.layer});
  }
  const auto cache = at.draft ? CacheKind::kDraft : CacheKind::kTarget;
  const auto held = plain_.read(cache, places);
  const uint32_t heads = s.query_heads, dim = s.head_dim_k;
  const std::vector<double> query = query_of({.history = row.histories[told],
                                              .previous = row.previous[told],
                                              .position = offset(cache, row.request) + position},
                                             at);
  for (uint32_t h = 0; h < heads; ++h) {
    const uint32_t layer = at.layer + (at.draft ? s.layers : 0);
    append_head(held, places, {std::span(query).subspan(h * dim, dim), {layer, h}, slot}, out);
  }
}

std::vector<double> AttendingEngine::query_of(const StoredToken& token, ContentLayer at) const {
  const Shape& s = case_.shape;
  std::vector<std::byte> bytes(content_.query_bytes());
  content_.query(token, at, bytes);
  std::vector<double> query(size_t{s.query_heads} * s.head_dim_k);
  decode_row(s.query_dtype, bytes.data(), query.size(), query.data());
  const bool turns = s.rope.pairing != RopePairing::kNone && wrong_ != Wrong::kQueryNotTurned;
  const int64_t position = token.position + (wrong_ == Wrong::kQueryTurnedTooFar ? 1 : 0);
  for (uint32_t head = 0; turns && head < s.query_heads; ++head) {
    const auto row = std::span(query).subspan(size_t{head} * s.head_dim_k, s.head_dim_k);
    std::ranges::copy(rotator_.rotate(position, row).value, row.begin());
  }
  return query;
}

// Of K and V of a slot.
std::pair<double, double> AttendingEngine::scales_of(const std::vector<SlotBytes>& held,
                                                     size_t slot, uint32_t kv_head) const {
  if (!content_.has_scales()) return {1, 1};
  const SlotBytes& from = wrong_ == Wrong::kScaleOfNewest ? held.back() : held[slot];
  const float key = from.key_scales[kv_head];
  return {key, wrong_ == Wrong::kValueByKeyScale ? key : from.value_scales[kv_head]};
}

void AttendingEngine::append_head(const std::vector<SlotBytes>& held,
                                  const std::vector<SlotPlace>& places, const Asking& asking,
                                  const Out& row_out) const {
  const Shape& s = case_.shape;
  const uint32_t kv_head = asking.head.head * s.kv_heads / s.query_heads;
  const double scale = s.scale * (wrong_ == Wrong::kScale ? 1.5 : 1);
  std::vector<double> row(s.head_dim_k), weights, sums(s.head_dim_v);
  double total = 0;
  for (const SlotBytes& slot : held) {
    const size_t bytes = slot.key.size() / s.kv_heads;
    decode_row(s.kv_dtype, slot.key.data() + kv_head * bytes, s.head_dim_k, row.data());
    double score = 0;
    for (uint32_t i = 0; i < s.head_dim_k; ++i) score += row[i] * asking.query[i];
    score *= scale * scales_of(held, weights.size(), kv_head).first;
    if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
    const auto distance = asking.slot - static_cast<int64_t>(places[weights.size()].slot);
    if (s.alibi) score -= alibi_slope(case_, asking.head) * static_cast<double>(distance);
    weights.push_back(std::exp(score));
    total += weights.back();
  }
  if (s.sinks) total += std::exp(sink_logit(case_, asking.head));
  for (size_t j = 0; j < held.size(); ++j) {
    const size_t bytes = held[j].value.size() / s.kv_heads;
    decode_row(s.kv_dtype, held[j].value.data() + kv_head * bytes, s.head_dim_v, row.data());
    const double weight = weights[j] / total * scales_of(held, j, kv_head).second;
    for (uint32_t i = 0; i < s.head_dim_v; ++i) sums[i] += weight * row[i];
  }
  const double lse = std::log(total) * (wrong_ == Wrong::kBaseTwo ? 1.4426950408889634 : 1);
  const auto rounded = static_cast<float>(lse);
  row_out.lse.push_back(row_out.nudged ? std::nextafter(rounded, 100.0f) : rounded);
  std::vector<std::byte>& out = row_out.output;
  const size_t before = out.size();
  out.resize(before + s.head_dim_v * dtype_bytes(s.output_dtype));
  encode_row(s.output_dtype, sums.data(), s.head_dim_v, out.data() + before);
}

}  // namespace kv
