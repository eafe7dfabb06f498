#include "harness/relation/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "harness/case/data.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

/// The n-th time that this slot of this request is queried.
using RowKey = std::tuple<RequestId, int64_t, uint32_t>;

struct ResultRow {
  const OpObservation* op = nullptr;
  uint64_t token = 0;
  int64_t batch_slot = 0;
  uint32_t kv_length = 0;
  bool pad = false;
};

using ResultRows = std::map<RowKey, ResultRow>;

ResultRows result_rows(const Seen& seen) {
  ResultRows rows;
  Timeline timeline = Timeline::create(seen.c).value();
  for (uint32_t i = 0; i < seen.ops.size() && i < seen.c.ops.size(); ++i) {
    const PlannedStep step = timeline.apply(i);
    for_each_query(step, [&](const RowPlace& place) {
      RowKey key{place.row->request, place.slot(), 0};
      while (rows.contains(key)) ++std::get<2>(key);
      rows[key] = {.op = &seen.ops[i],
                   .token = place.token,
                   .batch_slot = place.row->batch_slot,
                   .kv_length = place.row->kv_length,
                   .pad = is_pad_row(timeline, place)};
      return false;
    });
  }
  return rows;
}

/// An element of a result: of O, or with dimension -1 of the LSE.
struct Element {
  uint32_t layer = 0, head = 0;
  int64_t dimension = -1;
};

uint32_t bits_of(const Shape& shape, const ResultRow& row, const Element& at) {
  const LayerResult& result = row.op->layers[at.layer];
  const uint64_t index = row.token * shape.query_heads + at.head;
  uint32_t bits = 0;
  if (at.dimension < 0) {
    std::memcpy(&bits, &result.lse[index], sizeof bits);
  } else {
    const uint32_t bytes = dtype_bytes(shape.output_dtype);
    const uint64_t element = index * shape.head_dim_v + static_cast<uint64_t>(at.dimension);
    std::memcpy(&bits, &result.output[element * bytes], bytes);
  }
  return bits;
}

/// A variant that the case forces may be offered for one of two batches only. What runs in the
/// other is then not the plugin's choice by company, which a promise would be about.
bool is_same_choice(const Case& c, const OpObservation& base, const OpObservation& image) {
  return c.exec.variant.empty() || base.variant == image.variant;
}

class Comparison {
 public:
  Comparison(const Seen& base, const Image& image) : base_(base), image_(image) {}

  std::optional<Failure> row(const RowKey& key, const ResultRow& want, const ResultRow& got) const {
    const Shape& shape = base_.c.shape;
    for (uint32_t layer = 0; layer < want.op->layers.size(); ++layer) {
      if (in_place() && same_bits(want, got, layer)) continue;
      for (uint32_t head = 0; head < shape.query_heads; ++head) {
        for (int64_t d = -1; d < int64_t{shape.head_dim_v}; ++d) {
          const Element at{layer, head, d};
          const uint32_t a = bits_of(shape, want, at);
          const uint32_t b = bits_of(image_.c.shape, got, partner(at));
          if (a != b) return failure(key, want, at, a, b);
        }
      }
    }
    return std::nullopt;
  }

 private:
  /// Every element's partner stands where it stands itself.
  bool in_place() const {
    const Shape &a = base_.c.shape, &b = image_.c.shape;
    return image_.head_rotation == 0 && image_.value_rotation == 0 &&
           a.query_heads == b.query_heads && a.head_dim_v == b.head_dim_v &&
           a.output_dtype == b.output_dtype;
  }
  bool same_bits(const ResultRow& want, const ResultRow& got, uint32_t layer) const {
    const Shape& shape = base_.c.shape;
    const LayerResult &a = want.op->layers[layer], &b = got.op->layers[layer];
    const uint64_t heads = shape.query_heads;
    const uint64_t bytes = heads * shape.head_dim_v * dtype_bytes(shape.output_dtype);
    return std::memcmp(&a.output[want.token * bytes], &b.output[got.token * bytes], bytes) == 0 &&
           std::memcmp(&a.lse[want.token * heads], &b.lse[got.token * heads],
                       heads * sizeof(float)) == 0;
  }
  Element partner(Element at) const {
    const Shape& shape = base_.c.shape;
    const uint32_t shift = image_.head_rotation * (shape.query_heads / shape.kv_heads);
    at.head = (at.head + shape.query_heads - shift) % shape.query_heads;
    if (at.dimension >= 0)
      at.dimension = (at.dimension + shape.head_dim_v - image_.value_rotation) % shape.head_dim_v;
    return at;
  }

  Failure failure(const RowKey& key, const ResultRow& row, const Element& at, uint32_t want,
                  uint32_t got) const {
    const DType type = at.dimension < 0 ? DType::kF32 : base_.c.shape.output_dtype;
    Divergence d;
    d.op_index = row.op->op_index;
    d.request = std::get<0>(key).value;
    d.batch_slot = row.batch_slot;
    d.layer = at.layer;
    d.head = at.head;
    d.query_slot = std::get<1>(key);
    d.dimension = at.dimension;
    d.tensor = at.dimension < 0 ? "lse" : "output";
    d.want = d.admissible_low = d.admissible_high = decode(type, want);
    d.got = decode(type, got);
    d.want_bits = hex_bits(type, want);
    d.got_bits = hex_bits(type, got);
    d.kv_length = row.kv_length;
    const std::string name = base_.c.exec.relation;
    return {.stage = Stage::kMetamorphic,
            .failure_class = "relation:" + name,
            .message = fmt::format(
                "The {} of operation {}, request {}, query slot {}, layer {}, head {}{} has the "
                "bits {}; with {} it has {}, in the same process, right after. The plugin promises "
                "equal bits.",
                d.tensor, d.op_index, d.request, d.query_slot, d.layer, d.head,
                at.dimension < 0 ? "" : fmt::format(", dimension {}", at.dimension), d.want_bits,
                find_relation(name)->purpose, d.got_bits),
            .divergence = std::move(d)};
  }

  const Seen& base_;
  const Image& image_;
};

bool is_same_page(const PageImage& a, const PageImage& b) {
  return a.layer == b.layer && a.value == b.value && a.page == b.page;
}

std::optional<Failure> page_failure(const Seen& base, const OpObservation& op,
                                    const PageImage& want, const PageImage& got) {
  if (!is_same_page(want, got) || want.bytes.size() != got.bytes.size()) return std::nullopt;
  const auto [w, g] = std::mismatch(want.bytes.begin(), want.bytes.end(), got.bytes.begin());
  if (w == want.bytes.end()) return std::nullopt;
  Divergence d;
  d.op_index = op.op_index;
  d.layer = want.layer;
  d.tensor = want.value ? "value cache" : "key cache";
  d.want_bits = fmt::format("0x{:02x}", std::to_integer<unsigned>(*w));
  d.got_bits = fmt::format("0x{:02x}", std::to_integer<unsigned>(*g));
  const std::string name = base.c.exec.relation;
  return Failure{.stage = Stage::kMetamorphic,
                 .failure_class = "relation:" + name,
                 .message = fmt::format(
                     "After operation {} the {} of layer {}, page {}, byte {} holds {}; with {} it "
                     "holds {}, though append was given the same.",
                     d.op_index, d.tensor, d.layer, want.page.value, w - want.bytes.begin(),
                     d.want_bits, find_relation(name)->purpose, d.got_bits),
                 .divergence = std::move(d)};
}

/// Of the first page that differs.
std::optional<Failure> first_of_cache(const Seen& base, const Seen& seen) {
  for (size_t i = 0; i < std::min(base.ops.size(), seen.ops.size()); ++i) {
    const std::vector<PageImage>&want = base.ops[i].pages, &got = seen.ops[i].pages;
    for (size_t page = 0; page < std::min(want.size(), got.size()); ++page)
      if (auto failure = page_failure(base, base.ops[i], want[page], got[page])) return failure;
  }
  return std::nullopt;
}

}  // namespace

bool bits_promised(const Relation& relation, const PluginFacts& facts) {
  return relation.agreement == Agreement::kBits &&
         (facts.promises & relation.promises) == relation.promises;
}

std::optional<Failure> disagreement(const Seen& base, const Image& image, const Seen& seen,
                                    const PluginFacts& facts) {
  const ResultRows partners = result_rows(seen);
  const Comparison comparison(base, image);
  for (const auto& [key, want] : result_rows(base)) {
    const auto partner = partners.find(key);
    if (partner == partners.end()) continue;
    const bool is_pad = want.pad || partner->second.pad;
    if (is_pad && facts.pad_rows > KV_PAD_ROWS_ZERO) continue;
    if (!is_same_choice(base.c, *want.op, *partner->second.op)) continue;
    if (auto failure = comparison.row(key, want, partner->second)) return failure;
  }
  return std::nullopt;
}

bool cache_promised(const Relation& relation, const PluginFacts& facts) {
  return relation.same_cache && (facts.promises & KV_PROMISE_DETERMINISTIC) != 0;
}

std::optional<Failure> cache_disagreement(const Seen& base, const Seen& seen) {
  std::optional<Failure> failure = first_of_cache(base, seen);
  if (failure && append_digest(base.c) != append_digest(seen.c)) return std::nullopt;
  return failure;
}

}  // namespace kv
