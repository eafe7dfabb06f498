#include "harness/judge/contract_stage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "harness/case/cascade.h"
#include "harness/case/limits.h"
#include "harness/case/mask_bits.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/visible.h"

namespace kv {
namespace {

constexpr uint32_t kLseCanary = 0xffffffff;
constexpr uint32_t kMinusInfinity = 0xff800000, kPlusInfinity = 0x7f800000;

uint64_t query_rows(const PlannedStep& step) {
  uint64_t count = 0;
  for (const PlannedRow& row : step.rows) count += row.queries;
  return count;
}

// One (query row, head) of one layer's results.
struct Element {
  const StepView& view;
  const LayerResult& layer;
  const RowPlace& place;
  uint32_t head;

  const std::byte* output(uint32_t dim) const {
    const Shape& s = view.c.shape;
    const size_t index = (place.token * s.query_heads + head) * s.head_dim_v + dim;
    return &layer.output[index * dtype_bytes(s.output_dtype)];
  }
  uint32_t output_bits(uint32_t dim) const {
    uint32_t bits = 0;
    std::memcpy(&bits, output(dim), dtype_bytes(view.c.shape.output_dtype));
    return bits;
  }
  bool holds_nan() const {
    const Shape& s = view.c.shape;
    std::array<double, limits::kHeadDimMax> row;
    decode_row(s.output_dtype, output(0), s.head_dim_v, row.data());
    uint32_t nan = 0;
    for (uint32_t dim = 0; dim < s.head_dim_v; ++dim) nan |= std::isnan(row[dim]);
    return nan != 0;
  }
  uint32_t lse_bits() const {
    return std::bit_cast<uint32_t>(layer.lse[place.token * view.c.shape.query_heads + head]);
  }
  uint32_t canary() const {
    return 0xffffffffu >> (32 - 8 * dtype_bytes(view.c.shape.output_dtype));
  }
};

std::string where_text(const Element& e, const std::string& tensor) {
  return tensor + " of request " + std::to_string(e.place.row->request.value) + " at query slot " +
         std::to_string(e.place.slot()) + " (layer " + std::to_string(e.layer.layer) + ", head " +
         std::to_string(e.head) + ")";
}

Failure lse_failure(const Element& e, std::string failure_class, const std::string& message,
                    uint32_t want) {
  Divergence d = divergence_at(e.view, *e.place.row, e.layer.layer);
  d.tensor = "lse";
  d.head = e.head;
  d.query_slot = e.place.slot();
  d.want = decode(DType::kF32, want);
  d.got = decode(DType::kF32, e.lse_bits());
  d.want_bits = hex_bits(DType::kF32, want);
  d.got_bits = hex_bits(DType::kF32, e.lse_bits());
  return {Stage::kContract, std::move(failure_class),
          "The " + where_text(e, "LSE") + " " + message + ", got " + d.got_bits + ".", d};
}

Failure output_failure(const Element& e, uint32_t dim, std::string failure_class,
                       const std::string& message, uint32_t want) {
  const DType type = e.view.c.shape.output_dtype;
  Divergence d = divergence_at(e.view, *e.place.row, e.layer.layer);
  d.tensor = "output";
  d.head = e.head;
  d.query_slot = e.place.slot();
  d.dimension = dim;
  d.want = decode(type, want);
  d.got = decode(type, e.output_bits(dim));
  d.want_bits = hex_bits(type, want);
  d.got_bits = hex_bits(type, e.output_bits(dim));
  return {Stage::kContract, std::move(failure_class),
          "The " + where_text(e, "output") + ", dimension " + std::to_string(dim) + " " + message +
              ", got " + d.got_bits + ".",
          d};
}

// A row that must be 0 and have the empty row's LSE, and why.
std::optional<Failure> judge_zero(const Element& e, const char* kind, const std::string& why) {
  for (uint32_t dim = 0; dim < e.view.c.shape.head_dim_v; ++dim) {
    const uint32_t bits = e.output_bits(dim);
    if (decode(e.view.c.shape.output_dtype, bits) == 0) continue;
    return output_failure(e, dim,
                          bits == e.canary() ? "output-unwritten" : std::string(kind) + "-output",
                          why + " and must be 0", 0);
  }
  const uint32_t declared = e.view.facts.empty_row_lse;
  if (declared == KV_EMPTY_LSE_UNSPECIFIED) return std::nullopt;
  const uint32_t want = declared == KV_EMPTY_LSE_PLUS_INF ? kPlusInfinity : kMinusInfinity;
  if (e.lse_bits() == want) return std::nullopt;
  return lse_failure(e, e.lse_bits() == kLseCanary ? "lse-unwritten" : std::string(kind) + "-lse",
                     why + " and must be " + hex_bits(DType::kF32, want) + " as declared", want);
}

std::optional<Failure> judge_unwritten(const Element& e) {
  for (uint32_t dim = 0; dim < e.view.c.shape.head_dim_v; ++dim) {
    if (e.output_bits(dim) == e.canary()) continue;
    return output_failure(e, dim, "pad-row-written",
                          "is of a PAD row and must stay unwritten as declared", e.canary());
  }
  return std::nullopt;
}

// An explicit value of the case that is not finite: NaN may then be somebody's right answer, and
// the value stage, which knows what each row sees, asks instead.
bool finite_inputs(const Case& c) {
  for (const Data::Override& o : c.data.overrides) {
    const DType type = o.tensor == 0 ? c.shape.query_dtype : c.shape.kv_dtype;
    if (!std::isfinite(decode(type, encode(type, o.value)))) return false;
  }
  return true;
}

// Finite inputs, so NaN is nobody's value; Inf is left to the interval.
std::optional<Failure> judge_not_nan(const Element& e) {
  const DType type = e.view.c.shape.output_dtype;
  const uint32_t dims = e.holds_nan() ? e.view.c.shape.head_dim_v : 0;
  for (uint32_t dim = 0; dim < dims; ++dim) {
    const uint32_t bits = e.output_bits(dim);
    if (!std::isnan(decode(type, bits))) continue;
    if (bits == e.canary()) {
      return output_failure(e, dim, "output-unwritten",
                            "was never written: it still holds the canary", 0);
    }
    Failure failure = output_failure(e, dim, "output-nan", "must be a number", 0);
    failure.symptom = true;
    return failure;
  }
  if (!std::isnan(decode(DType::kF32, e.lse_bits()))) return std::nullopt;
  if (e.lse_bits() == kLseCanary) {
    return lse_failure(e, "lse-unwritten", "was never written: it still holds the canary", 0);
  }
  Failure failure = lse_failure(e, "lse-nan", "must be a number", 0);
  failure.symptom = true;
  return failure;
}

std::optional<Failure> judge_duty(const Element& e, RowDuty duty, bool finite) {
  switch (duty) {
    case RowDuty::kEmpty:
      return judge_zero(e, "empty-row", "sees no key");
    case RowDuty::kPadZero:
      return judge_zero(e, "pad-row", "is of a PAD row, declared to be zero,");
    case RowDuty::kUnwritten:
      return judge_unwritten(e);
    case RowDuty::kValues:
      return finite ? judge_not_nan(e) : std::nullopt;
    case RowDuty::kNothing:
      break;
  }
  return std::nullopt;
}

struct ResultSizes {
  uint64_t output = 0, lse = 0;
  bool fit(const LayerResult& result) const {
    return result.output.size() == output && result.lse.size() == lse;
  }
};

std::string malformed_cascades(const StepView& view, const ResultSizes& sizes) {
  const size_t parts = cascade_parts(view.c, view.step);
  const size_t layers = parts == 0 || sizes.lse == 0 ? 0 : view.c.shape.layers;
  bool fits = view.seen.cascades.size() == layers;
  for (size_t i = 0; i < layers && fits; ++i) {
    const CascadeResult& cascade = view.seen.cascades[i];
    fits = cascade.layer == i && cascade.parts.size() == parts && sizes.fit(cascade.merged);
    for (const LayerResult& part : cascade.parts) fits = fits && sizes.fit(part);
  }
  if (fits) return "";
  return "results of cascades that are not of " + std::to_string(layers) + " layers, " +
         std::to_string(parts) + " parts and " + std::to_string(sizes.output) +
         " bytes of output each";
}

}  // namespace

std::string malformed(const StepView& view) {
  const Shape& s = view.c.shape;
  for (const PageImage& image : view.seen.pages) {
    if (std::string text = view.pool.defect(image); !text.empty()) return text;
  }
  if (view.seen.status != OpStatus::kOk) return "";
  const uint64_t tokens = query_rows(view.step);
  const size_t layers = tokens == 0 ? 0 : s.layers;
  if (view.seen.layers.size() != layers) {
    return "results of " + std::to_string(view.seen.layers.size()) + " layers, expected " +
           std::to_string(layers);
  }
  const uint64_t lse = tokens * s.query_heads;
  const uint64_t output = lse * s.head_dim_v * dtype_bytes(s.output_dtype);
  for (size_t i = 0; i < layers; ++i) {
    const LayerResult& layer = view.seen.layers[i];
    if (layer.layer != i || layer.output.size() != output || layer.lse.size() != lse) {
      return "layer " + std::to_string(layer.layer) + " with " +
             std::to_string(layer.output.size()) + " bytes of output and " +
             std::to_string(layer.lse.size()) + " LSE values, expected layer " + std::to_string(i) +
             " with " + std::to_string(output) + " and " + std::to_string(lse);
    }
  }
  return malformed_cascades(view, {output, lse});
}

std::optional<Failure> judge_status(const OpObservation& seen) {
  const bool refused = seen.status == OpStatus::kRefused;
  if (!refused && seen.status != OpStatus::kFailed) return std::nullopt;
  return Failure{Stage::kContract, refused ? "refused" : "failed",
                 std::string("The plugin ") + (refused ? "refused" : "failed") +
                     " the lawful operation " + std::to_string(seen.op_index) + ": " +
                     seen.message};
}

std::optional<Failure> judge_trespasses(const OpObservation& seen) {
  if (seen.trespasses.empty()) return std::nullopt;
  const Trespass& t = seen.trespasses.front();
  Divergence d;
  d.op_index = seen.op_index;
  d.tensor = t.tensor;
  d.want = t.want;
  d.got = t.got;
  std::string message = "Operation " + std::to_string(seen.op_index) + " changed " +
                        std::to_string(t.bytes_changed) + " bytes of the " + t.tensor +
                        " that it may not write; the first is byte " +
                        std::to_string(t.offset_bytes) + ", want " + std::to_string(t.want) +
                        ", got " + std::to_string(t.got) + ".";
  return Failure{Stage::kContract, "trespass", std::move(message), d};
}

VisibleSets visible_sets(const StepView& view) {
  const uint32_t heads = mask_heads(view.c);
  VisibleSets sets(heads);
  for (const PlannedRow& row : view.step.rows) {
    const Sequence& sequence = view.timeline.sequence(row.request);
    std::vector<uint8_t> real;
    for (const Slot& slot : sequence.slots) real.push_back(!slot.pad);
    real.resize(row.kv_length);
    const reference::MaskGeometry geometry{.causal = view.c.mask.causal,
                                           .window_left = view.c.mask.window_left,
                                           .window_right = view.c.mask.window_right,
                                           .queries = row.queries,
                                           .real = real,
                                           .append_slots = row.append_slots,
                                           .tree_parents = row.tree_parents};
    for (uint32_t q = 0; q < row.queries; ++q) {
      const std::vector<uint8_t> geometric = reference::visible_keys(geometry, q);
      for (uint32_t head = 0; head < heads; ++head) {
        const MaskRow mask(view.c, sequence, {q, head});
        std::vector<uint8_t> slots = geometric;
        for (uint32_t key = 0; key < row.kv_length; ++key) {
          slots[key] = slots[key] && mask.shows(key);
        }
        sets.add(std::move(slots));
      }
    }
  }
  return sets;
}

RowDuty row_duty(const StepView& view, const RowPlace& place, const std::vector<uint8_t>& visible) {
  if (is_pad_row(view.timeline, place)) {
    switch (view.facts.pad_rows) {
      case KV_PAD_ROWS_COMPUTED:
        break;
      case KV_PAD_ROWS_ZERO:
        return RowDuty::kPadZero;
      case KV_PAD_ROWS_UNWRITTEN:
        return RowDuty::kUnwritten;
      default:
        return RowDuty::kNothing;
    }
  }
  const bool empty = std::all_of(visible.begin(), visible.end(), [](uint8_t v) { return v == 0; });
  return empty ? RowDuty::kEmpty : RowDuty::kValues;
}

std::optional<Failure> judge_rows(const StepView& view, const VisibleSets& visible,
                                  ContractCounts& counts) {
  std::optional<Failure> failure;
  const bool finite = finite_inputs(view.c);
  for_each_query(view.step, [&](const RowPlace& place) {
    counts.rows_pad += is_pad_row(view.timeline, place);
    bool is_empty = false;
    for (uint32_t head = 0; head < view.c.shape.query_heads && !failure; ++head) {
      const RowDuty duty = row_duty(view, place, visible.of(place.token, head));
      is_empty = is_empty || duty == RowDuty::kEmpty;
      for (const LayerResult& layer : view.seen.layers) {
        if (!failure) failure = judge_duty(Element{view, layer, place, head}, duty, finite);
      }
    }
    counts.rows_empty += is_empty;
    return failure.has_value();
  });
  return failure;
}

}  // namespace kv
