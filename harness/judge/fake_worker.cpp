#include "harness/judge/fake_worker.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "harness/case/cascade.h"
#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/core/check.h"
#include "harness/judge/conversion.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

class FakeWorker {
 public:
  FakeWorker(const Case& c, const FakeFaults& faults)
      : c_(c), faults_(faults), timeline_(Timeline::create(c).value()), conversion_(c) {}

  Observation run() {
    Observation o;
    o.plugin = {.name = "fake", .version = "1", .pad_rows = KV_PAD_ROWS_COMPUTED};
    for (uint32_t i = 0; i < c_.ops.size(); ++i) o.ops.push_back(operation(i));
    if (faults_.finish) faults_.finish(o);
    return o;
  }

 private:
  OpObservation operation(uint32_t index) {
    const PlannedStep step = timeline_.apply(index);
    OpObservation seen;
    seen.op_index = index;
    seen.status = OpStatus::kOk;
    seen.variant = "fake";
    seen.profile = {.tile_slots = 16, .accumulate = KV_ACCUMULATE_FMA};
    uint64_t queries = 0;
    for (const PlannedRow& row : step.rows) queries += row.queries;
    for (uint32_t layer = 0; layer < c_.shape.layers; ++layer) {
      for (const PlannedRow& row : step.rows) append(row, layer, seen);
      if (queries == 0) continue;
      seen.layers.push_back(attend(step, layer, queries, {0, ~uint32_t{0}}));
      if (cascade_parts(c_, step) > 0) seen.cascades.push_back(cascade(step, layer, queries));
    }
    for (const auto& [place, bytes] : changed_) {
      seen.pages.push_back({place.layer, place.value, place.page, bytes});
    }
    changed_.clear();
    return seen;
  }

  std::vector<std::byte>& page(uint32_t layer, bool value, PageId id) {
    auto [found, fresh] = pages_.try_emplace({layer, value, id});
    if (fresh) {
      const uint32_t dim = value ? c_.shape.head_dim_v : c_.shape.head_dim_k;
      const uint32_t bytes = dtype_bytes(c_.shape.kv_dtype);
      const uint32_t code = pool_poison_code(c_.pool.poison, c_.shape.kv_dtype);
      found->second.resize(size_t{c_.pool.page_slots} * c_.shape.kv_heads * dim * bytes);
      for (size_t i = 0; i < found->second.size(); i += bytes) {
        std::memcpy(&found->second[i], &code, bytes);
      }
    }
    return found->second;
  }

  void append(const PlannedRow& row, uint32_t layer, OpObservation&) {
    const Sequence& sequence = timeline_.sequence(row.request);
    for (int64_t s = row.kv_length - row.append_slots; s < row.kv_length; ++s) {
      const int64_t to = faults_.written_slot ? faults_.written_slot(row, s) : s;
      if (to < 0) continue;
      for (bool value : {false, true}) write(row, sequence, layer, value, s, to);
    }
  }

  void write(const PlannedRow& row, const Sequence& sequence, uint32_t layer, bool value,
             int64_t from, int64_t to) {
    const TensorRole role = value ? TensorRole::kValue : TensorRole::kKey;
    const size_t bytes = row_elements(c_.shape, role) * dtype_bytes(c_.shape.kv_dtype);
    const PageId id = sequence.pages.at(static_cast<size_t>(to) / c_.pool.page_slots);
    std::vector<std::byte>& target = page(layer, value, id);
    if (conversion_.changes(value)) {
      // Nothing is near a NaN, so every element becomes the nearest code.
      const std::vector<std::byte> none(bytes * c_.shape.kv_heads, std::byte{0xff});
      std::vector<std::byte> codes;
      SlotOf of{sequence, static_cast<uint64_t>(from), row.kv_length};
      if (faults_.key_position) of.turned_to = faults_.key_position(sequence, from);
      conversion_.nearest(of, {layer, value, id}, none, codes);
      std::copy(codes.begin(), codes.end(),
                target.begin() + to % c_.pool.page_slots * static_cast<int64_t>(codes.size()));
      changed_[{layer, value, id}] = target;
      return;
    }
    for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
      const size_t at = (to % c_.pool.page_slots * c_.shape.kv_heads + head) * bytes;
      fill_row(c_,
               {.role = role,
                .request = row.request,
                .slot = static_cast<uint64_t>(from),
                .layer = layer,
                .head = head,
                .kv_length = row.kv_length},
               sequence.slots[from], std::span(target).subspan(at, bytes));
    }
    changed_[{layer, value, id}] = target;
  }

  CascadeResult cascade(const PlannedStep& step, uint32_t layer, uint64_t queries) {
    CascadeResult result{.layer = layer, .parts = {}, .merged = {}};
    for (uint32_t part = 0; part < cascade_parts(c_, step); ++part) {
      result.parts.push_back(attend(step, layer, queries, cascade_range(c_, step, part)));
    }
    result.merged = merge(result.parts);
    return result;
  }

  LayerResult merge(const std::vector<LayerResult>& parts) const {
    LayerResult merged = parts.front();
    const DType type = c_.shape.output_dtype;
    const uint32_t dims = c_.shape.head_dim_v;
    const size_t bytes = size_t{dims} * dtype_bytes(type);
    std::vector<double> o(dims), part_o(dims);
    for (size_t row = 0; row < merged.lse.size(); ++row) {
      double max = kMinusInfinity, sum = 0;
      for (const LayerResult& part : parts) max = std::max<double>(max, part.lse[row]);
      std::fill(o.begin(), o.end(), 0);
      for (const LayerResult& part : parts) {
        if (part.lse[row] == kMinusInfinity) continue;
        const double weight = std::exp(part.lse[row] - max);
        decode_row(type, &part.output[row * bytes], dims, part_o.data());
        for (uint32_t d = 0; d < dims; ++d) o[d] += weight * part_o[d];
        sum += weight;
      }
      for (double& x : o) x = sum == 0 ? 0 : x / sum;
      encode_row(type, o.data(), dims, &merged.output[row * bytes]);
      merged.lse[row] = static_cast<float>(sum == 0 ? kMinusInfinity : max + std::log(sum));
    }
    return merged;
  }

  LayerResult attend(const PlannedStep& step, uint32_t layer, uint64_t queries, SlotRange slots) {
    const Shape& s = c_.shape;
    LayerResult result{.layer = layer, .output = {}, .lse = {}};
    result.output.resize(queries * s.query_heads * s.head_dim_v * dtype_bytes(s.output_dtype));
    std::byte* out = result.output.data();
    for (const PlannedRow& row : step.rows) {
      const Sequence& sequence = timeline_.sequence(row.request);
      for (uint32_t q = 0; q < row.queries; ++q) {
        for (uint32_t head = 0; head < s.query_heads; ++head) {
          std::vector<uint8_t> visible = visible_slots(c_, sequence, row, {q, head});
          if (faults_.visible) faults_.visible(row, q, visible);
          for (uint32_t i = 0; i < visible.size(); ++i) {
            visible[i] = visible[i] && i >= slots.begin && i < slots.end;
          }
          std::vector<double> o(s.head_dim_v);
          result.lse.push_back(static_cast<float>(attend_row(row, layer, q, head, visible, o)));
          encode_row(s.output_dtype, o.data(), o.size(), out);
          out += o.size() * dtype_bytes(s.output_dtype);
        }
      }
    }
    return result;
  }

  std::vector<double> cache_row(const Sequence& sequence, uint32_t layer, bool value, size_t slot,
                                uint32_t head) {
    const size_t index = slot / c_.pool.page_slots;
    const PageId id =
        faults_.read_page ? faults_.read_page(sequence, index) : sequence.pages[index];
    const uint32_t dim = value ? c_.shape.head_dim_v : c_.shape.head_dim_k;
    const size_t at = (slot % c_.pool.page_slots * c_.shape.kv_heads + head) * dim *
                      dtype_bytes(c_.shape.kv_dtype);
    std::vector<double> row(dim);
    decode_row(c_.shape.kv_dtype, &page(layer, value, id)[at], dim, row.data());
    const float scale = slot_scale(c_, sequence, slot, {layer, value, head});
    for (double& x : row) x *= scale;
    return row;
  }

  double attend_row(const PlannedRow& row, uint32_t layer, uint32_t query, uint32_t head,
                    const std::vector<uint8_t>& visible, std::vector<double>& out) {
    const Shape& s = c_.shape;
    const Sequence& sequence = timeline_.sequence(row.request);
    const uint32_t group = s.query_heads / s.kv_heads;
    const uint32_t kv_head = faults_.kv_head ? faults_.kv_head(head) : head / group;
    const int64_t slot = query_slot(row, query);
    std::vector<std::byte> bits(row_bytes(s, TensorRole::kQuery));
    fill_row(c_,
             {.role = TensorRole::kQuery,
              .request = row.request,
              .query_slot = slot,
              .layer = layer,
              .head = head,
              .kv_length = row.kv_length},
             slot_or_tokenless(c_, sequence, slot), bits);
    std::vector<double> q(s.head_dim_k);
    decode_row(s.query_dtype, bits.data(), q.size(), q.data());
    if (conversion_.rotates())
      q = conversion_.rotated_query(slot_or_tokenless(c_, sequence, slot).position, q).value;
    const double anchor = c_.mask.causal == Causal::kTopLeft ? query : double(slot);
    std::vector<double> scores;
    double max = kMinusInfinity, sum = 0;
    for (size_t i = 0; i < visible.size(); ++i) {
      double score = kMinusInfinity;
      if (visible[i]) {
        const std::vector<double> k = cache_row(sequence, layer, false, i, kv_head);
        score = 0;
        for (size_t c = 0; c < q.size(); ++c) score += q[c] * k[c];
        score *= s.scale;
        if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
        if (s.alibi) score -= alibi_slope(c_, {layer, head}) * std::fabs(double(i) - anchor);
      }
      scores.push_back(score);
      max = std::max(max, score);
    }
    if (max == kMinusInfinity) return kMinusInfinity;
    if (s.sinks) {
      const double sink = sink_logit(c_, {layer, head});
      max = std::max(max, sink);
      sum = std::exp(sink - max);
    }
    for (size_t i = 0; i < visible.size(); ++i) {
      if (!visible[i]) continue;
      const double weight = std::exp(scores[i] - max);
      const std::vector<double> v = cache_row(sequence, layer, true, i, kv_head);
      sum += weight;
      for (size_t j = 0; j < v.size(); ++j) out[j] += weight * v[j];
    }
    for (double& x : out) x /= sum;
    return max + std::log(sum);
  }

  struct Place {
    uint32_t layer;
    bool value;
    PageId page;
    auto operator<=>(const Place&) const = default;
  };
  const Case& c_;
  const FakeFaults& faults_;
  Timeline timeline_;
  const Conversion conversion_;
  std::map<Place, std::vector<std::byte>> pages_, changed_;
};

}  // namespace

Observation fake_observation(const Case& c, const FakeFaults& faults) {
  return FakeWorker(c, faults).run();
}

Case small_case() {
  Case c;
  c.shape.layers = 2;
  c.shape.query_heads = 4;
  c.shape.kv_heads = 2;
  c.shape.head_dim_k = 32;
  c.shape.head_dim_v = 16;
  c.pool.page_slots = 4;
  c.pool.page_count = 32;
  c.data.seed = 7;
  const RequestId a{0}, b{1};
  c.ops.push_back(op::Admit{.request = a, .prompt_tokens = 11});
  c.ops.push_back(op::Admit{.request = b, .prompt_tokens = 6});
  c.ops.push_back(op::Step{.rows = {{.request = a, .append = 11, .queries = 11},
                                    {.request = b, .append = 6, .queries = 6}}});
  c.ops.push_back(op::Step{.rows = {{.request = b, .append = 1, .queries = 1},
                                    {.request = a, .append = 1, .queries = 1}}});
  return c;
}

}  // namespace kv
