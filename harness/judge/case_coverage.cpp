#include "harness/judge/case_coverage.h"

#include <fmt/format.h>

#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/case/timeline.h"
#include "harness/judge/contract_stage.h"
#include "harness/judge/value_stage.h"
#include "reference/case_shape.h"
#include "reference/coverage.h"

namespace kv {
namespace {

using reference::RowInputs;

// Whether some row certified it, for each slot or page that some row sees.
class Union {
 public:
  explicit Union(size_t size) : seen_(size, 0), certified_(size, 0) {}
  void add(size_t at, bool certified) {
    seen_[at] = 1;
    certified_[at] |= certified;
  }
  FaultCount count() const {
    FaultCount c;
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i]) c.add(certified_[i]);
    }
    return c;
  }
  std::vector<uint32_t> missing() const {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] && !certified_[i]) out.push_back(static_cast<uint32_t>(i));
    }
    return out;
  }

 private:
  std::vector<uint8_t> seen_, certified_;
};

// K and V of all slots of one request and head, from the data function.
struct HeadBytes {
  std::vector<std::byte> bytes;
  std::vector<const std::byte*> keys, values;
};

class StepCoverage {
 public:
  StepCoverage(const Case& c, const Timeline& timeline, const PlannedStep& step,
               const CoverageOptions& options)
      : c_(c),
        pool_(c),
        conversion_(c),
        view_{c, facts_, timeline, step, seen_, pool_, conversion_},
        visible_(visible_sets(view_)),
        profile_(profile_of(c, options.declared)) {}

  void run(CaseCoverage& out, uint64_t& work) {
    uint64_t first_token = 0;
    for (const PlannedRow& row : view_.step.rows) {
      for (uint32_t layer = 0; layer < c_.shape.layers && row.queries > 0; ++layer) {
        for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
          cover(row, first_token, {layer, head}, out, work);
        }
      }
      first_token += row.queries;
    }
  }

 private:
  struct Place {
    uint32_t layer = 0, kv_head = 0;
  };

  HeadBytes read(const PlannedRow& row, Place place) const {
    const Sequence& sequence = view_.timeline.sequence(row.request);
    const uint32_t k = row_bytes(c_.shape, TensorRole::kKey);
    const uint32_t v = row_bytes(c_.shape, TensorRole::kValue);
    HeadBytes head;
    head.bytes.resize(size_t{row.kv_length} * (k + v));
    for (uint32_t s = 0; s < row.kv_length; ++s) {
      std::byte* at = &head.bytes[size_t{s} * (k + v)];
      for (TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
        const bool value = role == TensorRole::kValue;
        fill_row(c_,
                 {.role = role,
                  .request = row.request,
                  .slot = s,
                  .layer = place.layer,
                  .head = place.kv_head,
                  .kv_length = row.kv_length},
                 sequence.slots[s], std::span(at + (value ? k : 0), value ? v : k));
        (value ? head.values : head.keys).push_back(at + (value ? k : 0));
      }
    }
    return head;
  }

  RowInputs inputs(const PlannedRow& row, const RowPlace& at, uint32_t layer, uint32_t query_head,
                   const HeadBytes& head) const {
    const Shape& shape = c_.shape;
    std::vector<std::byte> query(row_bytes(shape, TensorRole::kQuery));
    const int64_t slot = at.slot();
    fill_row(c_,
             {.role = TensorRole::kQuery,
              .request = row.request,
              .query_slot = slot,
              .layer = layer,
              .head = query_head,
              .kv_length = row.kv_length},
             slot_or_tokenless(c_, view_.timeline.sequence(row.request), slot), query);
    reference::QueryRow one{.query = query.data(), .visible = visible_.of(at.token, query_head)};
    one.anchor = c_.mask.causal == Causal::kTopLeft ? int64_t{at.query} : slot;
    if (shape.alibi) one.alibi_slope = alibi_slope(c_, {layer, query_head});
    if (shape.sinks) one.sink = sink_logit(c_, {layer, query_head});
    return reference::row_inputs({.shape = reference::head_shape(shape),
                                  .keys = head.keys,
                                  .values = head.values,
                                  .key_scales = {},
                                  .value_scales = {},
                                  .rows = std::span(&one, 1)},
                                 0);
  }

  void cover(const PlannedRow& row, uint64_t first_token, Place place, CaseCoverage& out,
             uint64_t& work) {
    const Shape& shape = c_.shape;
    const uint32_t group = shape.query_heads / shape.kv_heads;
    const HeadBytes head = read(row, place);
    const HeadBytes next = read(row, {place.layer, (place.kv_head + 1) % shape.kv_heads});
    Union dropped(row.kv_length), doubled(row.kv_length), swapped(row.kv_length);
    Union pages(row.kv_length / c_.pool.page_slots + 1), heads(1);
    HeadCoverage result;
    result.op_index = view_.step.op_index;
    result.layer = place.layer;
    result.kv_head = place.kv_head;
    result.request = row.request;
    for (uint32_t q = 0; q < row.queries; ++q) {
      const RowPlace at{&row, q, first_token + q};
      for (uint32_t g = 0; g < group; ++g) {
        const uint32_t query_head = place.kv_head * group + g;
        if (row_duty(view_, at, visible_.of(at.token, query_head)) != RowDuty::kValues) continue;
        const uint64_t cost = uint64_t{row.kv_length} * (shape.head_dim_k + shape.head_dim_v);
        if (cost > work) {
          ++out.rows_left_out;
          continue;
        }
        work -= cost;
        ++out.rows;
        const RowInputs in = inputs(row, at, place.layer, query_head, head);
        const auto c = reference::row_coverage(in, profile_, shape.output_dtype);
        for (size_t i = 0; i < in.count(); ++i) {
          dropped.add(in.slots[i], c.certified[i]);
          doubled.add(in.slots[i], c.doubled[i]);
          if (in.count() > 1) swapped.add(in.slots[i], c.swapped[i]);
        }
        result.sensitivity = std::max(result.sensitivity, c.uncertified_weight_max);
        cover_pages(in, pages);
        if (shape.kv_heads < 2) continue;
        const RowInputs other = inputs(row, at, place.layer, query_head, next);
        heads.add(0, reference::certified_apart(in, other, profile_, shape.output_dtype));
      }
    }
    result.dropped = dropped.count();
    result.doubled = doubled.count();
    result.swapped = swapped.count();
    result.pages = pages.count();
    result.heads = heads.count();
    result.uncertified_slots = dropped.missing();
    out.heads.push_back(std::move(result));
  }

  void cover_pages(const RowInputs& in, Union& pages) const {
    const uint32_t page_slots = c_.pool.page_slots;
    const auto lost =
        reference::certified_pages(in, profile_, c_.shape.output_dtype, {.page_slots = page_slots});
    size_t page = 0;
    for (size_t i = 0; i < in.count(); ++i) {
      if (i > 0 && in.slots[i] / page_slots == in.slots[i - 1] / page_slots) continue;
      pages.add(in.slots[i] / page_slots, lost[page++]);
    }
  }

  const Case& c_;
  const PluginFacts facts_;
  const OpObservation seen_;
  const PoolImage pool_;
  const Conversion conversion_;
  const StepView view_;
  const VisibleSets visible_;
  const reference::Profile profile_;
};

std::string count_text(const FaultCount& c) {
  return fmt::format("{}/{}", c.certified, c.possible);
}

}  // namespace

bool CaseCoverage::complete() const {
  for (const HeadCoverage& h : heads) {
    if (h.dropped.certified < h.dropped.possible) return false;
  }
  return rows_left_out == 0;
}

Result<CaseCoverage> case_coverage(const Case& c, const CoverageOptions& options) {
  KV_ASSIGN_OR_RETURN(Timeline timeline, Timeline::create(c));
  if (c.shape.rope.pairing != RopePairing::kNone || dtype_bytes(c.shape.kv_dtype) == 1) {
    return Error{ErrorKind::kUnsupported,
                 "coverage: the cache's bytes are not known before the run where K is rotated or "
                 "quantised"};
  }
  CaseCoverage coverage;
  uint64_t work = options.work;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    const PlannedStep step = timeline.apply(i);
    if (!step.rows.empty()) StepCoverage(c, timeline, step, options).run(coverage, work);
  }
  return coverage;
}

std::string coverage_text(const CaseCoverage& coverage) {
  std::string text = fmt::format(
      "certified coverage of {} query rows ({} left out): certified/possible faults\n"
      "  {:>4} {:>7} {:>5} {:>4} {:>11} {:>11} {:>11} {:>9} {:>5}  sensitivity\n",
      coverage.rows, coverage.rows_left_out, "op", "request", "layer", "head", "key lost",
      "key doubled", "V swapped", "page lost", "head");
  for (const HeadCoverage& h : coverage.heads) {
    text += fmt::format("  {:>4} {:>7} {:>5} {:>4} {:>11} {:>11} {:>11} {:>9} {:>5}  {:.3g}\n",
                        h.op_index, h.request.value, h.layer, h.kv_head, count_text(h.dropped),
                        count_text(h.doubled), count_text(h.swapped), count_text(h.pages),
                        count_text(h.heads), h.sensitivity);
  }
  return text;
}

}  // namespace kv
