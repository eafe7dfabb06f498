#include "harness/minimize/shrinker.h"

#include <map>
#include <span>

#include "harness/case/json.h"
#include "harness/case/timeline.h"
#include "harness/case/validate.h"
#include "harness/core/hash.h"

namespace kv {
namespace {

uint64_t text_hash(const Case& c) {
  const std::string text = case_to_json(c);
  return hash_bytes(std::as_bytes(std::span(text)));
}

// Values of slots, heads and dimensions that the candidate no longer has go with them.
void drop_homeless_overrides(Case& c) {
  if (c.data.overrides.empty()) return;
  std::map<RequestId, uint64_t> slots;
  for (const Op& operation : c.ops) {
    const auto* step = std::get_if<op::Step>(&operation);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      const op::StepRow& row = step->rows[r];
      slots[row.request] += uint64_t{row.pad_left} + row.append + row.pad_right;
    }
  }
  std::erase_if(c.data.overrides, [&](const Data::Override& o) {
    const uint32_t heads = o.tensor == 0 ? c.shape.query_heads : c.shape.kv_heads;
    const uint32_t dims = o.tensor == 2 ? c.shape.head_dim_v : c.shape.head_dim_k;
    return o.slot >= slots[o.request] || o.layer >= c.shape.layers || o.head >= heads ||
           o.dim >= dims;
  });
}

}  // namespace

namespace {

// A history is lawful whatever its operations do: what they may not do has to be refused.
bool is_lawful(const Case& c) {
  return c.engine ? check_case(c).ok() && check_history(c).ok() : Timeline::create(c).ok();
}

}  // namespace

Shrinker::Shrinker(const Case& from, const MinimizeHooks& hooks, const MinimizeLimits& limits)
    : hooks_(hooks),
      limits_(limits),
      deadline_(std::chrono::steady_clock::now() + limits.time_max),
      best_(from) {
  best_.data.digest.reset();  // of other inputs, as soon as anything changes
  weight_ = weight_of(best_);
}

bool Shrinker::spent() const {
  return error_ || attempts_ >= limits_.attempts_max ||
         std::chrono::steady_clock::now() >= deadline_;
}

bool Shrinker::take(Case candidate) {
  drop_homeless_overrides(candidate);
  if (spent() || !is_lawful(candidate)) return false;
  if (!(weight_of(candidate) < weight_)) return false;
  return run(std::move(candidate));
}

bool Shrinker::take_heavier(Case candidate) {
  if (spent() || !is_lawful(candidate)) return false;
  return run(std::move(candidate));
}

bool Shrinker::run(Case candidate) {
  if (!tried_.insert(text_hash(candidate)).second) return false;
  ++attempts_;
  const Result<bool> fails = hooks_.fails(candidate);
  if (!fails.ok()) error_ = fails.error();
  if (error_ || !*fails) return false;
  best_ = std::move(candidate);
  weight_ = weight_of(best_);
  ++accepted_;
  if (hooks_.keep) {
    if (const Result<void> kept = hooks_.keep(best_); !kept.ok()) error_ = kept.error();
  }
  return true;
}

}  // namespace kv
