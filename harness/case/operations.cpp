#include "harness/case/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/case/cascade.h"
#include "harness/case/limits.h"
#include "harness/case/names.h"
#include "harness/case/pages.h"
#include "harness/case/side_car.h"

namespace kv {
namespace {

// What the walk needs to know of a live request.
struct Held {
  uint64_t slots = 0;
  uint64_t real_tokens = 0;
  uint64_t pad_left = 0;       // PAD slots before the first real token
  bool ends_with_pad = false;  // PAD slots after a real token
  uint64_t pages = 0;
};

constexpr uint64_t kAtMost = uint64_t{1} << 28;  // keeps products within 64 bits

struct Ever {
  uint32_t prefix_depth = 0;
  uint64_t slots = 0;  // held in the end
};

class OperationChecker {
 public:
  explicit OperationChecker(const Case& c) : case_(c), pages_free_(c.pool.page_count) {}

  Result<void> check_all() {
    for (; index_ < case_.ops.size(); ++index_) {
      KV_RETURN_IF_ERROR(
          std::visit([this](const auto& op) { return check(op); }, case_.ops[index_]));
    }
    return check_overrides();
  }

 private:
  Result<void> check(const op::Admit& admit);
  Result<void> check(const op::Step& step);
  Result<void> check(const op::Cancel& cancel) { return release(cancel.request); }
  Result<void> check(const op::Finish& finish) { return release(finish.request); }
  template <class Other>
  Result<void> check(const Other&) {
    return unsupported(fmt::format("ops[{}]: operation '{}' is not supported at the kernel level",
                                   index_, op_name(case_.ops[index_])));
  }

  Result<void> check_row(const op::StepRow& row, const std::string& where);
  Result<void> check_totals(const op::Step& step, uint64_t step_tokens, uint64_t step_queries);
  uint64_t mask_bytes_max(const op::Step& step) const;
  Result<void> check_overrides() const;
  Result<void> release(RequestId request);
  Error not_live(const std::string& where, RequestId request) const;
  Error engine_only(const std::string& field) const {
    return unsupported(
        fmt::format("ops[{}].{}: is not supported at the kernel level", index_, field));
  }

  const Case& case_;
  uint64_t index_ = 0;
  std::map<RequestId, Held> live_;
  std::map<RequestId, Ever> ever_;
  uint64_t pages_free_ = 0;
  uint64_t rows_ = 0, slots_ = 0, queries_ = 0, work_ = 0;
};

Error OperationChecker::not_live(const std::string& where, RequestId request) const {
  return bad_input(fmt::format("{}: request {} is {}, expected a live request", where,
                               request.value,
                               ever_.contains(request) ? "no longer live" : "not admitted"));
}

Result<void> OperationChecker::check(const op::Admit& admit) {
  if (ever_.contains(admit.request)) {
    return bad_input(fmt::format("ops[{}]: request {} was admitted before, expected a new id",
                                 index_, admit.request.value));
  }
  if (admit.owner != 0) return engine_only("owner");
  if (admit.slots_max != 0) return engine_only("slots_max");
  Ever ever;
  if (admit.prefix_of) {
    const auto source = ever_.find(*admit.prefix_of);
    if (source == ever_.end()) {
      return bad_input(
          fmt::format("ops[{}].prefix_of: request {} is not admitted, expected an "
                      "earlier request",
                      index_, admit.prefix_of->value));
    }
    ever.prefix_depth = source->second.prefix_depth + 1;
    if (ever.prefix_depth > limits::kPrefixDepthMax) {
      return bad_input(
          fmt::format("ops[{}].prefix_of: chain of {} shared prefixes, expected at "
                      "most {}",
                      index_, ever.prefix_depth, limits::kPrefixDepthMax));
    }
  }
  ever_.emplace(admit.request, ever);
  live_.emplace(admit.request, Held{});
  return {};
}

Result<void> OperationChecker::release(RequestId request) {
  const auto found = live_.find(request);
  if (found == live_.end()) return not_live(fmt::format("ops[{}]", index_), request);
  pages_free_ += found->second.pages;
  live_.erase(found);
  return {};
}

Result<void> OperationChecker::check(const op::Step& step) {
  if (step.padded_layout || step.padded_left) {
    return unsupported(
        fmt::format("ops[{}].padded_layout: only ragged batches are supported at "
                    "the kernel level",
                    index_));
  }
  if (step.draft) return engine_only("draft");
  std::set<RequestId> in_batch;
  uint64_t tokens = 0, queries = 0;
  for (size_t r = 0; r < step.rows.size(); ++r) {
    const op::StepRow& row = step.rows[r];
    const std::string where = fmt::format("ops[{}].rows[{}]", index_, r);
    if (row.speculative > 0) return engine_only(fmt::format("rows[{}].speculative", r));
    if (row.cancel_before_layer > 0) {
      return engine_only(fmt::format("rows[{}].cancel_before_layer", r));
    }
    if (!in_batch.insert(row.request).second) {
      return bad_input(fmt::format("{}: request {} occurs twice in the step, expected once", where,
                                   row.request.value));
    }
    KV_RETURN_IF_ERROR(check_row(row, where));
    tokens += uint64_t{row.pad_left} + row.append + row.pad_right;
    queries += row.queries;
  }
  return check_totals(step, tokens, queries);
}

// Of the mask tensor, in the widest encoding.
uint64_t OperationChecker::mask_bytes_max(const op::Step& step) const {
  if (case_.mask.encoding == MaskEncoding::kNone) return 0;
  uint64_t queries = 1, slots = 1;
  for (const op::StepRow& row : step.rows) {
    queries = std::max<uint64_t>(queries, row.queries);
    slots = std::max(slots, live_.at(row.request).slots);
  }
  const uint64_t planes = uint64_t{case_.mask.broadcast_batch ? 1 : step.rows.size()} *
                          (case_.mask.broadcast_head ? 1 : case_.shape.query_heads);
  return std::min(planes * (case_.mask.broadcast_query ? 1 : queries), kAtMost) *
         std::min(slots, kAtMost) * 4;
}

// An override that no slot receives would change nothing, silently.
Result<void> OperationChecker::check_overrides() const {
  const auto& overrides = case_.data.overrides;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const auto found = ever_.find(overrides[i].request);
    const uint64_t slots = found == ever_.end() ? 0 : found->second.slots;
    if (overrides[i].slot < slots) continue;
    return bad_input(fmt::format(
        "data.overrides[{}]: expected a slot of an admitted request, got slot {} of request {}, "
        "which holds {}",
        i, overrides[i].slot, overrides[i].request.value, slots));
  }
  return {};
}

Result<void> OperationChecker::check_row(const op::StepRow& row, const std::string& where) {
  const auto found = live_.find(row.request);
  if (found == live_.end()) return not_live(where, row.request);
  Held& held = found->second;
  const bool hole =
      row.append > 0 && held.real_tokens > 0 && (held.ends_with_pad || row.pad_left > 0);
  const bool tells_holes =
      case_.mask.encoding != MaskEncoding::kNone && !case_.mask.broadcast_batch;
  if (hole && !tells_holes) {
    return unsupported(where +
                       ": PAD slots between real tokens (holes) need a mask tensor with a row for "
                       "each request");
  }
  if (held.real_tokens == 0 && row.append > 0) {
    held.pad_left = held.slots + row.pad_left;
  }
  held.real_tokens += row.append;
  held.slots += uint64_t{row.pad_left} + row.append + row.pad_right;
  ever_[row.request].slots = held.slots;
  held.ends_with_pad = held.real_tokens > 0 && held.slots > held.pad_left + held.real_tokens;

  const uint64_t page_slots = case_.pool.page_slots;
  const uint64_t pages = pages_for(held.slots, page_slots);
  if (pages - held.pages > pages_free_) {
    return bad_input(fmt::format(
        "{}: request {} needs {} more pages, got {} free of "
        "pool.page_count {}",
        where, row.request.value, pages - held.pages, pages_free_, case_.pool.page_count));
  }
  pages_free_ -= pages - held.pages;
  held.pages = pages;

  const Shape& shape = case_.shape;
  const uint64_t per_pair =
      uint64_t{shape.query_heads} * (shape.head_dim_k + shape.head_dim_v) * shape.layers;
  const uint64_t pairs = uint64_t{row.queries} * held.slots;
  if (pairs > (limits::kWorkMax - work_) / per_pair) {
    return bad_input(
        fmt::format("{}: the case exceeds {} multiply-adds in all", where, limits::kWorkMax));
  }
  work_ += pairs * per_pair;
  return {};
}

Result<void> OperationChecker::check_totals(const op::Step& step, uint64_t step_tokens,
                                            uint64_t step_queries) {
  rows_ += step.rows.size();
  slots_ += step_tokens;
  queries_ += step_queries;
  if (rows_ > limits::kRowsMax || slots_ > limits::kSlotsMax || queries_ > limits::kQueriesMax) {
    return bad_input(fmt::format(
        "ops[{}]: {} rows, {} slots and {} query rows so far, expected at most {}, {} and {}",
        index_, rows_, slots_, queries_, limits::kRowsMax, limits::kSlotsMax, limits::kQueriesMax));
  }
  const Shape& shape = case_.shape;
  const uint64_t dims = shape.head_dim_k + shape.head_dim_v;
  // A cascade's states are results too, and so is their merge.
  const uint64_t results = case_.exec.cascade_slots > 0 ? kCascadePartsMax + 2 : 1;
  const uint64_t bytes =
      4 * dims * (step_queries * shape.query_heads * results + step_tokens * shape.kv_heads) +
      mask_bytes_max(step);
  if (bytes > limits::kStepBytesMax) {
    return bad_input(fmt::format("ops[{}]: the step's tensors need {} bytes, expected at most {}",
                                 index_, bytes, limits::kStepBytesMax));
  }
  return {};
}

}  // namespace

Result<void> check_operations(const Case& c) { return OperationChecker(c).check_all(); }

Result<void> check_kernel_level(const Case& c) {
  const auto refuse = [](const char* what) {
    return unsupported(std::string(what) + " not supported at the kernel level");
  };
  const Shape& shape = c.shape;
  for (const DType type : {shape.query_dtype, shape.output_dtype}) {
    if (dtype_bytes(type) == 1) return refuse("shape: 8-bit queries and outputs are");
  }
  const bool converts = shape.rope.pairing != RopePairing::kNone ||
                        shape.kv_scale != KvScale::kNone || dtype_bytes(shape.kv_dtype) == 1;
  if (shape.value_in_key && converts) {
    return refuse("shape.value_in_key: RoPE or a quantised cache, where V lies in K, is");
  }
  if (c.exec.cascade_slots > 0 && shape.sinks) {
    return refuse("exec.cascade_slots: a sink, which every part would count, is");
  }
  if (c.pool.overcommit != 1.0) return refuse("pool.overcommit: overcommitted pools are");
  if (!c.data.tensors_file.empty() && side_car_of(c) == nullptr) {
    return bad_input(
        "data.tensors_file: expected a case that was read from its file, got one that "
        "stands alone");
  }
  if (c.engine) return refuse("engine: cases for engines that own their cache are");
  return {};
}

}  // namespace kv
