// Purpose: everything that a case may have in it, one row each: its name, when a case has it, what
// a campaign must have met of it, and how a plugin is asked whether it offers it. Whatever counts,
// requires, probes or leaves out features is derived from here: a new feature is a new row (and the
// choice of the generator that makes it).
// Contract: names are stable, for reports. Rows of one choice exclude each other; the first of them
// that a plugin offers stands in for one that it does not. `set` and `with` change a case that has
// the feature not, `without` one that has it; all of them keep the case lawful.
// Example:  met[feature("empty_row")]; offered.has(feature("sinks"))
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "harness/case/case.h"
#include "harness/case/timeline.h"

namespace kv {

/// What a feature is one value of.
enum class Choice : uint8_t {
  kFree,  // excludes nothing
  kType,
  kSharing,
  kCausality,
  kPageSize,
  kOrder,
  kLayout,
  kPoison,
  kDesign,
  kDim,
  kRounding,
  kEncoding,
  kCache,
  kScale,
  kPairing,
};

/// What a campaign that holds the covering array must have met.
enum class Asked : uint8_t {
  kNo,
  kAlone,    // the feature; too rare to ask for its pairs
  kInPairs,  // the feature, and each pair of it and another one, unless both are of one choice
};

/// A row of a step, after its append.
struct RowMet {
  const Case& c;
  const op::StepRow& row;
  const PlannedRow& plan;
  const Sequence& sequence;
  bool reuses_pages;  // holds a page that a released request has held
};
/// One query of it.
struct QueryMet {
  const RowMet& row;
  uint32_t query;
};
struct StepMet {
  const op::Step& step;
  const PlannedStep& plan;
  bool pool_is_full;
};

struct FeatureRow {
  std::string_view name;
  Choice choice = Choice::kFree;
  Asked asked = Asked::kNo;
  bool in_every_campaign = false;  // of kCampaignCases judged cases, array or not

  // When a case has it: exactly one of these, counted over what it takes.
  bool (*of_case)(const Case&) = nullptr;
  bool (*of_operation)(const Op&) = nullptr;
  bool (*of_step)(const StepMet&) = nullptr;
  bool (*of_row)(const RowMet&) = nullptr;
  bool (*of_query)(const QueryMet&) = nullptr;

  // Only where a plugin may say that it does not offer it. In words, for people:
  std::string_view offer = "";
  void (*set)(Case&) = nullptr;  // gives it to a case
  /// The `way`-th small case with it, of the plainest that the plugin offers; false: no more ways.
  /// A plugin that takes one of them offers it. None: `set` is the only way.
  bool (*with)(Case&, uint32_t way) = nullptr;
  void (*without)(Case&) = nullptr;  // where nothing else of its choice stands in for it

  /// It cannot be met with a plugin that offers none of these.
  std::array<std::string_view, 4> needs_one_of = {};
};

namespace feature_rows {

inline bool is_decode(const op::StepRow& row, const PlannedRow& plan) {
  return row.append == 1 && row.queries == 1 && plan.kv_length > 1;
}
inline bool is_prefill(const op::StepRow& row) { return row.append > 1 && row.queries > 1; }
inline bool was_empty(const PlannedRow& plan) { return plan.kv_length == plan.append_slots; }
inline bool has_one_dim(const Case& c, uint32_t dim) {
  return c.shape.head_dim_k == dim && c.shape.head_dim_v == dim;
}
/// Slots of the row's request are so many more than a multiple of a page.
inline bool has_residue(const RowMet& m, uint32_t residue) {
  const size_t length = m.sequence.slots.size(), page = m.c.pool.page_slots;
  return length > 0 && length % page == residue % page;
}
inline bool has_mask(const Case& c) { return c.mask.encoding != MaskEncoding::kNone; }
inline bool is_grouped(const Case& c) { return c.shape.query_heads != c.shape.kv_heads; }
inline op::Step& step_of(Case& c) { return std::get<op::Step>(c.ops[1]); }

inline void set_type(Case& c, DType type) {
  Shape& s = c.shape;
  if (dtype_bytes(s.kv_dtype) > 1) s.kv_dtype = type;
  s.query_dtype = s.output_dtype = type;
}
inline void set_dim(Case& c, uint32_t dim) { c.shape.head_dim_k = c.shape.head_dim_v = dim; }
inline void set_heads(Case& c, uint32_t kv_heads, uint32_t group) {
  c.shape.kv_heads = kv_heads;
  c.shape.query_heads = kv_heads * group;
}
inline void forget_mask(Case& c) {
  const Mask plain;
  Mask& m = c.mask;
  m = {.causal = m.causal, .window_left = m.window_left, .window_right = m.window_right};
}
inline void set_rope(Case& c, RopePairing pairing) {
  Rope& rope = c.shape.rope;
  rope.pairing = pairing;
  if (rope.dims == 0) rope.dims = c.shape.head_dim_k / 2 * 2;
}
inline void forget_codes(Case& c) {
  c.shape.kv_dtype = c.shape.query_dtype;
  c.shape.kv_scale = KvScale::kNone;
}

/// Ways of what is one of a few values.
template <class T, size_t n>
bool take(const T (&values)[n], uint32_t way, T& to) {
  if (way >= n) return false;
  to = values[way];
  return true;
}
inline bool with_pages(Case& c, std::initializer_list<uint32_t> sizes, uint32_t way) {
  if (way >= sizes.size()) return false;
  c.pool.page_slots = sizes.begin()[way];
  return true;
}
inline bool with_codes(Case& c, DType type, uint32_t way) {
  c.shape.kv_dtype = type;
  constexpr KvScale kScales[] = {KvScale::kNone, KvScale::kToken, KvScale::kTensor, KvScale::kHead,
                                 KvScale::kPage};
  return take(kScales, way, c.shape.kv_scale);
}
inline bool with_scale(Case& c, KvScale scale, uint32_t way) {
  c.shape.kv_scale = scale;
  constexpr DType kCodes[] = {DType::kE4m3, DType::kI8, DType::kE5m2};
  return take(kCodes, way, c.shape.kv_dtype);
}
inline bool with_mask(Case& c, uint32_t way) {
  constexpr MaskEncoding kEncodings[] = {MaskEncoding::kBoolKeep, MaskEncoding::kBoolBlock,
                                         MaskEncoding::kPackedBits, MaskEncoding::kAdditive};
  return take(kEncodings, way, c.mask.encoding);
}
/// Alone, and with the causal limit that most kernels have it with.
inline bool with_window(Case& c, int64_t Mask::*window, uint32_t way) {
  c.mask.*window = 3;
  constexpr Causal kLimits[] = {Causal::kNone, Causal::kBottomRight};
  return take(kLimits, way, c.mask.causal);
}
inline bool with_holes(Case& c, uint32_t way) {
  step_of(c).rows[0].pad_right = 1;
  const RequestId request = step_of(c).rows[0].request;
  c.ops.emplace_back(op::Step{.rows = {{.request = request, .append = 1, .queries = 1}}});
  return with_mask(c, way);
}
inline bool with_value_dim(Case& c, uint32_t way) {
  constexpr uint32_t kKeys[] = {192, 128}, kValues[] = {128, 64};
  return take(kKeys, way, c.shape.head_dim_k) && take(kValues, way, c.shape.head_dim_v);
}
inline bool with_latent(Case& c, uint32_t way) {
  c.shape.value_in_key = true;
  constexpr uint32_t kKeys[] = {576, 96}, kValues[] = {512, 64};
  return take(kKeys, way, c.shape.head_dim_k) && take(kValues, way, c.shape.head_dim_v);
}
inline bool with_part_rotated(Case& c, uint32_t way) {
  c.shape.rope.dims = c.shape.head_dim_k / 4 * 2;
  constexpr RopePairing kPairings[] = {RopePairing::kNeox, RopePairing::kInterleaved};
  return take(kPairings, way, c.shape.rope.pairing);
}

bool sees_no_key(const QueryMet& met);  // a live row; features.cpp
bool stands_at_pad(const QueryMet& met);
bool branches(const RowMet& met);
bool has_pages_out_of_order(const RowMet& met);
bool mixes_decode_and_prefill(const StepMet& met);
bool has_ragged_queries(const StepMet& met);
bool has_mask_by_head(const Case& c);

inline constexpr Asked kPairs = Asked::kInPairs;

inline constexpr auto kFeatureRows =
    std::to_array<FeatureRow>({
        // Attention rows.
        {.name = "empty_row", .asked = kPairs, .in_every_campaign = true, .of_query = sees_no_key},
        {.name = "pad_query_row",
         .asked = kPairs,
         .of_query = stands_at_pad,
         .needs_one_of = {"padding_left", "padding_right", "padding_holes"}},
        {.name = "queries_exceed_keys",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.plan.queries > m.plan.kv_length; }},
        {.name = "queries_not_keys",
         .in_every_campaign = true,
         .of_row =
             [](const RowMet& m) {
               return m.plan.queries > 0 && m.plan.queries != m.plan.kv_length;
             }},
        {.name = "queries_equal_keys",
         .of_row =
             [](const RowMet& m) {
               return m.plan.queries > 0 && m.plan.queries == m.plan.kv_length;
             }},
        {.name = "no_queries",  // only appends
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.plan.queries == 0; }},
        {.name = "no_keys",
         .asked = Asked::kAlone,
         .of_row = [](const RowMet& m) { return m.plan.queries > 0 && m.plan.kv_length == 0; }},
        {.name = "queries_only",  // attends without appending
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.plan.queries > 0 && m.plan.append_slots == 0; }},
        {.name = "decode",  // appends one token to a cache that holds some, and attends with it
         .asked = kPairs,
         .in_every_campaign = true,
         .of_row = [](const RowMet& m) { return is_decode(m.row, m.plan); }},
        {.name = "prefill_whole",  // appends several to an empty cache
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return is_prefill(m.row) && was_empty(m.plan); }},
        {.name = "prefill_chunk",  // appends several to one that holds some
         .asked = kPairs,
         .in_every_campaign = true,
         .of_row = [](const RowMet& m) { return is_prefill(m.row) && !was_empty(m.plan); }},
        {.name = "padding_left",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.row.pad_left > 0; },
         .offer = "padding at the left",
         .set = [](Case& c) { step_of(c).rows[0].pad_left = 1; }},
        {.name = "padding_right",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.row.pad_right > 0; },
         .offer = "padding at the right",
         .set = [](Case& c) { step_of(c).rows[0].pad_right = 1; }},
        {.name = "padding_holes",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.plan.holes; },
         .offer = "padding holes",
         .with = with_holes},
        {.name = "verify_tree",  // a tree that branches
         .asked = kPairs,
         .of_row = branches,
         .offer = "trees",
         .set =
             [](Case& c) {
               step_of(c).rows[0].tree_parents = {-1, 0, 0, 1};
             }},
        // Pages.
        {.name = "page_straddle",
         .asked = kPairs,
         .in_every_campaign = true,
         .of_row = [](const RowMet& m) { return m.sequence.pages.size() > 1; }},
        {.name = "pages_out_of_order",
         .asked = kPairs,
         .in_every_campaign = true,
         .of_row = has_pages_out_of_order},
        {.name = "length_mod_page_0",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return has_residue(m, 0); }},
        {.name = "length_mod_page_1",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return has_residue(m, 1); }},
        {.name = "length_mod_page_minus_1",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return has_residue(m, m.c.pool.page_slots - 1); }},
        {.name = "page_reuse",
         .asked = kPairs,
         .of_row = [](const RowMet& m) { return m.reuses_pages; }},
        {.name = "pool_full",  // no page is free after a step
         .asked = kPairs,
         .of_step = [](const StepMet& m) { return m.pool_is_full; }},
        // Batches and histories.
        {.name = "multi_row_batch",
         .asked = kPairs,
         .of_step = [](const StepMet& m) { return m.step.rows.size() > 1; }},
        {.name = "mixed_batch",
         .asked = kPairs,
         .in_every_campaign = true,
         .of_step = mixes_decode_and_prefill},
        {.name = "ragged_queries",
         .asked = kPairs,
         .in_every_campaign = true,
         .of_step = has_ragged_queries},
        {.name = "cancel",
         .asked = kPairs,
         .of_operation = [](const Op& o) { return std::holds_alternative<op::Cancel>(o); }},
        {.name = "finish",
         .of_operation = [](const Op& o) { return std::holds_alternative<op::Finish>(o); }},
        {.name = "prefix_shared",
         .asked = kPairs,
         .of_operation =
             [](const Op& o) {
               const auto* admit = std::get_if<op::Admit>(&o);
               return admit != nullptr && admit->prefix_tokens > 0;
             }},
        {.name = "position_offset",
         .asked = kPairs,
         .of_operation =
             [](const Op& o) {
               const auto* admit = std::get_if<op::Admit>(&o);
               return admit != nullptr && admit->position_offset != 0;
             }},
        // Shape.
        {.name = "mha",
         .choice = Choice::kSharing,
         .asked = kPairs,
         .of_case = [](const Case& c) { return !is_grouped(c); },
         .offer = "a K/V head for each query head",
         .set = [](Case& c) { c.shape.query_heads = c.shape.kv_heads; }},
        {.name = "gqa",
         .choice = Choice::kSharing,
         .asked = kPairs,
         .in_every_campaign = true,
         .of_case = [](const Case& c) { return is_grouped(c) && c.shape.kv_heads > 1; },
         .offer = "head groups",
         .set = [](Case& c) { set_heads(c, 2, 2); },
         .with =
             [](Case& c, uint32_t way) {
               set_heads(c, 2, way + 2);
               return way < 3;
             }},
        {.name = "mqa",
         .choice = Choice::kSharing,
         .asked = kPairs,
         .of_case = [](const Case& c) { return is_grouped(c) && c.shape.kv_heads == 1; },
         .offer = "one K/V head",
         .set = [](Case& c) { set_heads(c, 1, 2); },
         .with =
             [](Case& c, uint32_t way) {
               set_heads(c, 1, way + 2);
               return way < 3;
             }},
        {.name = "multi_layer",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.layers > 1; }},
        {.name = "f16",
         .choice = Choice::kType,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.query_dtype == DType::kF16; },
         .offer = "f16",
         .set = [](Case& c) { set_type(c, DType::kF16); }},
        {.name = "bf16",
         .choice = Choice::kType,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.query_dtype == DType::kBf16; },
         .offer = "bf16",
         .set = [](Case& c) { set_type(c, DType::kBf16); }},
        {.name = "f32",
         .choice = Choice::kType,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.query_dtype == DType::kF32; },
         .offer = "f32",
         .set = [](Case& c) { set_type(c, DType::kF32); }},
        {.name = "latent",  // V lies in K; before the head dimensions, which stand in for it
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return c.shape.value_in_key; },
         .offer = "latent cache",
         .with = with_latent,
         .without =
             [](Case& c) {
               c.shape.value_in_key = false;
               set_dim(c, 64);
             }},
        {.name = "value_dim",  // K and V of different dimension
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return c.shape.head_dim_k != c.shape.head_dim_v; },
         .offer = "value dimension",
         .with = with_value_dim,
         .without =
             [](Case& c) {
               if (!c.shape.value_in_key) c.shape.head_dim_v = c.shape.head_dim_k;
             }},
        {.name = "head_dim_64",
         .choice = Choice::kDim,
         .asked = kPairs,
         .of_case = [](const Case& c) { return has_one_dim(c, 64); },
         .offer = "head dimension 64",
         .set = [](Case& c) { set_dim(c, 64); }},
        {.name = "head_dim_128",
         .choice = Choice::kDim,
         .asked = kPairs,
         .of_case = [](const Case& c) { return has_one_dim(c, 128); },
         .offer = "head dimension 128",
         .set = [](Case& c) { set_dim(c, 128); }},
        {.name = "head_dim_96",
         .choice = Choice::kDim,
         .asked = kPairs,
         .of_case = [](const Case& c) { return has_one_dim(c, 96); },
         .offer = "head dimension 96",
         .set = [](Case& c) { set_dim(c, 96); }},
        {.name = "head_dim_80",
         .choice = Choice::kDim,
         .asked = kPairs,
         .of_case = [](const Case& c) { return has_one_dim(c, 80); },
         .offer = "head dimension 80",
         .set = [](Case& c) { set_dim(c, 80); }},
        {.name = "head_dim_256",
         .choice = Choice::kDim,
         .asked = kPairs,
         .of_case = [](const Case& c) { return has_one_dim(c, 256); },
         .offer = "head dimension 256",
         .set = [](Case& c) { set_dim(c, 256); }},
        {.name = "head_dim_other",  // odd multiples of eight
         .choice = Choice::kDim,
         .of_case =
             [](const Case& c) {
               const uint32_t dim = c.shape.head_dim_k;
               const bool usual = dim == 64 || dim == 80 || dim == 96 || dim == 128 || dim == 256;
               return dim == c.shape.head_dim_v && !usual;
             },
         .offer = "odd head dimension",
         .set = [](Case& c) { set_dim(c, 72); }},
        {.name = "softcap",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.softcap > 0; },
         .offer = "softcap",
         .set = [](Case& c) { c.shape.softcap = 30; },
         .without = [](Case& c) { c.shape.softcap = 0; }},
        {.name = "alibi",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.alibi; },
         .offer = "ALiBi",
         .set = [](Case& c) { c.shape.alibi = true; },
         .without = [](Case& c) { c.shape.alibi = false; }},
        {.name = "sinks",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.sinks; },
         .offer = "sinks",
         .set = [](Case& c) { c.shape.sinks = true; },
         .without = [](Case& c) { c.shape.sinks = false; }},
        // Mask.
        {.name = "causal_bottom_right",
         .choice = Choice::kCausality,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.causal == Causal::kBottomRight; },
         .offer = "bottom-right causal",
         .set = [](Case& c) { c.mask.causal = Causal::kBottomRight; }},
        {.name = "causal_none",
         .choice = Choice::kCausality,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.causal == Causal::kNone; },
         .offer = "no causal limit",
         .set = [](Case& c) { c.mask.causal = Causal::kNone; }},
        {.name = "causal_top_left",
         .choice = Choice::kCausality,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.causal == Causal::kTopLeft; },
         .offer = "top-left causal",
         .set = [](Case& c) { c.mask.causal = Causal::kTopLeft; }},
        {.name = "window_left",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.window_left >= 0; },
         .offer = "left window",
         .with = [](Case& c, uint32_t way) { return with_window(c, &Mask::window_left, way); },
         .without = [](Case& c) { c.mask.window_left = -1; }},
        {.name = "window_right",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.window_right >= 0; },
         .offer = "right window",
         .with = [](Case& c, uint32_t way) { return with_window(c, &Mask::window_right, way); },
         .without = [](Case& c) { c.mask.window_right = -1; }},
        {.name = "mask_packed_bits",
         .choice = Choice::kEncoding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.encoding == MaskEncoding::kPackedBits; },
         .offer = "packed mask",
         .set = [](Case& c) { c.mask.encoding = MaskEncoding::kPackedBits; },
         .without = forget_mask},
        {.name = "mask_bool_keep",
         .choice = Choice::kEncoding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.encoding == MaskEncoding::kBoolKeep; },
         .offer = "keep mask",
         .set = [](Case& c) { c.mask.encoding = MaskEncoding::kBoolKeep; },
         .without = forget_mask},
        {.name = "mask_bool_block",
         .choice = Choice::kEncoding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.encoding == MaskEncoding::kBoolBlock; },
         .offer = "block mask",
         .set = [](Case& c) { c.mask.encoding = MaskEncoding::kBoolBlock; },
         .without = forget_mask},
        {.name = "mask_additive",
         .choice = Choice::kEncoding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.mask.encoding == MaskEncoding::kAdditive; },
         .offer = "additive mask",
         .set = [](Case& c) { c.mask.encoding = MaskEncoding::kAdditive; },
         .with =
             [](Case& c, uint32_t way) {
               c.mask.encoding = MaskEncoding::kAdditive;
               constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBf16};
               return take(kTypes, way, c.mask.additive_dtype);
             },
         .without = forget_mask},
        {.name = "mask_finite_minimum",
         .asked = Asked::kAlone,
         .of_case =
             [](const Case& c) {
               return c.mask.encoding == MaskEncoding::kAdditive && c.mask.additive_finite_minimum;
             },
         .needs_one_of = {"mask_additive"}},
        {.name = "mask_broadcast_batch",
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return has_mask(c) && c.mask.broadcast_batch; },
         .needs_one_of = {"mask_packed_bits", "mask_bool_keep", "mask_bool_block",
                          "mask_additive"}},
        {.name = "mask_broadcast_head",
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return has_mask(c) && c.mask.broadcast_head; },
         .needs_one_of = {"mask_packed_bits", "mask_bool_keep", "mask_bool_block",
                          "mask_additive"}},
        {.name = "mask_by_head",  // a plane for each of several query heads
         .asked = Asked::kAlone,
         .of_case = has_mask_by_head,
         .needs_one_of = {"mask_packed_bits", "mask_bool_keep", "mask_bool_block",
                          "mask_additive"}},
        {.name = "mask_broadcast_query",
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return has_mask(c) && c.mask.broadcast_query; },
         .needs_one_of = {"mask_packed_bits", "mask_bool_keep", "mask_bool_block",
                          "mask_additive"}},
        // Pool.
        {.name = "page_slots_16",
         .choice = Choice::kPageSize,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.page_slots == 16; },
         .offer = "pages of 16 slots",
         .set = [](Case& c) { c.pool.page_slots = 16; }},
        {.name = "page_slots_1",
         .choice = Choice::kPageSize,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.page_slots == 1; },
         .offer = "pages of one slot",
         .set = [](Case& c) { c.pool.page_slots = 1; }},
        {.name = "page_slots_2_to_8",
         .choice = Choice::kPageSize,
         .of_case = [](const Case& c) { return c.pool.page_slots >= 2 && c.pool.page_slots <= 8; },
         .offer = "pages of 2 to 8 slots",
         .set = [](Case& c) { c.pool.page_slots = 8; },
         .with =
             [](Case& c, uint32_t way) {
               return with_pages(c, {8, 4, 2}, way);
             }},
        {.name = "page_slots_32_to_64",
         .choice = Choice::kPageSize,
         .of_case =
             [](const Case& c) { return c.pool.page_slots >= 32 && c.pool.page_slots <= 64; },
         .offer = "pages of 32 to 64 slots",
         .set = [](Case& c) { c.pool.page_slots = 32; },
         .with =
             [](Case& c, uint32_t way) {
               return with_pages(c, {32, 64}, way);
             }},
        {.name = "page_slots_128_to_256",
         .choice = Choice::kPageSize,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.page_slots >= 128; },
         .offer = "pages of 128 to 256 slots",
         .set = [](Case& c) { c.pool.page_slots = 128; },
         .with =
             [](Case& c, uint32_t way) {
               return with_pages(c, {128, 256}, way);
             }},
        {.name = "order_identity",
         .choice = Choice::kOrder,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.order == PageOrder::kIdentity; }},
        {.name = "order_reversed",
         .choice = Choice::kOrder,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.order == PageOrder::kReversed; }},
        {.name = "order_shuffled",
         .choice = Choice::kOrder,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.order == PageOrder::kShuffled; }},
        {.name = "far_pages",
         .choice = Choice::kOrder,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.order == PageOrder::kFarApart; }},
        {.name = "layout_slot_head",
         .choice = Choice::kLayout,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.layout == CacheLayout::kSlotHead; }},
        {.name = "layout_head_slot",
         .choice = Choice::kLayout,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.layout == CacheLayout::kHeadSlot; }},
        {.name = "layout_interleaved",  // K beside V, and Q, K, V and O as views with gaps
         .choice = Choice::kLayout,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.layout == CacheLayout::kInterleaved; }},
        {.name = "poison_undefined",
         .choice = Choice::kPoison,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.poison == Poison::kUndefined; }},
        {.name = "poison_finite_huge",
         .choice = Choice::kPoison,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.poison == Poison::kFiniteHuge; }},
        {.name = "poison_nan",
         .choice = Choice::kPoison,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.pool.poison == Poison::kNan; }},
        // Data.
        {.name = "design_normal",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kNormal; }},
        {.name = "design_uniform_exact",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kUniformExact; }},
        {.name = "design_dyadic",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kDyadic; }},
        {.name = "design_subset_select",
         .choice = Choice::kDesign,
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return c.data.design == Design::kSubsetSelect; }},
        {.name = "design_sparse_code",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kSparseCode; }},
        {.name = "design_boundary_needles",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kBoundaryNeedles; }},
        {.name = "design_ascending",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kAscending; }},
        {.name = "design_large_scores",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kLargeScores; }},
        {.name = "design_census",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kCensus; }},
        {.name = "design_constant_value",
         .choice = Choice::kDesign,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.data.design == Design::kConstantValue; }},
        // Execution.
        {.name = "schedule_seed",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.schedule_seed != 0; }},
        {.name = "rounding_nearest",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kNearest; }},
        {.name = "rounding_random",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kRandom; }},
        {.name = "rounding_up",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kUp; }},
        {.name = "rounding_down",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kDown; }},
        {.name = "rounding_mma_ampere",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kMmaAmpere; }},
        {.name = "rounding_mma_hopper",
         .choice = Choice::kRounding,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.rounding == Rounding::kMmaHopper; }},
        {.name = "split_forced",
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.split_slots > 0; },
         .offer = "split sizes",
         .set = [](Case& c) { c.exec.split_slots = 16; },
         .without = [](Case& c) { c.exec.split_slots = 0; }},
        {.name = "cascade",
         .asked = Asked::kAlone,
         .of_case = [](const Case& c) { return c.exec.cascade_slots > 0; },
         .offer = "merges of states",
         .set = [](Case& c) { c.exec.cascade_slots = 16; },
         .without = [](Case& c) { c.exec.cascade_slots = 0; }},
        {.name = "graph",  // attend is launched from a graph
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.exec.graph; },
         .offer = "graphs",
         .set = [](Case& c) { c.exec.graph = true; },
         .without = [](Case& c) { c.exec.graph = false; }},
        {.name = "repeated", .of_case = [](const Case& c) { return c.exec.repeat > 1; }},
        {.name = "variant_forced",
         .of_case = [](const Case& c) { return !c.exec.variant.empty(); }},
        // How K and V are stored.
        {.name = "cache_e4m3",
         .choice = Choice::kCache,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_dtype == DType::kE4m3; },
         .offer = "e4m3 cache",
         .set = [](Case& c) { c.shape.kv_dtype = DType::kE4m3; },
         .with = [](Case& c, uint32_t way) { return with_codes(c, DType::kE4m3, way); },
         .without = forget_codes},
        {.name = "cache_e5m2",
         .choice = Choice::kCache,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_dtype == DType::kE5m2; },
         .offer = "e5m2 cache",
         .set = [](Case& c) { c.shape.kv_dtype = DType::kE5m2; },
         .with = [](Case& c, uint32_t way) { return with_codes(c, DType::kE5m2, way); },
         .without = forget_codes},
        {.name = "cache_i8",
         .choice = Choice::kCache,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_dtype == DType::kI8; },
         .offer = "int8 cache",
         .set = [](Case& c) { c.shape.kv_dtype = DType::kI8; },
         .with = [](Case& c, uint32_t way) { return with_codes(c, DType::kI8, way); },
         .without = forget_codes},
        {.name = "scale_tensor",
         .choice = Choice::kScale,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_scale == KvScale::kTensor; },
         .offer = "scale of a tensor",
         .set = [](Case& c) { c.shape.kv_scale = KvScale::kTensor; },
         .with = [](Case& c, uint32_t way) { return with_scale(c, KvScale::kTensor, way); },
         .without = [](Case& c) { c.shape.kv_scale = KvScale::kNone; }},
        {.name = "scale_head",
         .choice = Choice::kScale,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_scale == KvScale::kHead; },
         .offer = "scale of a head",
         .set = [](Case& c) { c.shape.kv_scale = KvScale::kHead; },
         .with = [](Case& c, uint32_t way) { return with_scale(c, KvScale::kHead, way); },
         .without = [](Case& c) { c.shape.kv_scale = KvScale::kNone; }},
        {.name = "scale_token",
         .choice = Choice::kScale,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_scale == KvScale::kToken; },
         .offer = "scale of a token",
         .set = [](Case& c) { c.shape.kv_scale = KvScale::kToken; },
         .with = [](Case& c, uint32_t way) { return with_scale(c, KvScale::kToken, way); },
         .without = [](Case& c) { c.shape.kv_scale = KvScale::kNone; }},
        {.name = "scale_page",
         .choice = Choice::kScale,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.kv_scale == KvScale::kPage; },
         .offer = "scale of a page",
         .set = [](Case& c) { c.shape.kv_scale = KvScale::kPage; },
         .with = [](Case& c, uint32_t way) { return with_scale(c, KvScale::kPage, way); },
         .without = [](Case& c) { c.shape.kv_scale = KvScale::kNone; }},
        {.name = "rope_neox",
         .choice = Choice::kPairing,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.rope.pairing == RopePairing::kNeox; },
         .offer = "neox RoPE",
         .set = [](Case& c) { set_rope(c, RopePairing::kNeox); },
         .without = [](Case& c) { c.shape.rope = {}; }},
        {.name = "rope_interleaved",
         .choice = Choice::kPairing,
         .asked = kPairs,
         .of_case = [](const Case& c) { return c.shape.rope.pairing == RopePairing::kInterleaved; },
         .offer = "interleaved RoPE",
         .set = [](Case& c) { set_rope(c, RopePairing::kInterleaved); },
         .without = [](Case& c) { c.shape.rope = {}; }},
        {.name = "rope_partial",
         .asked = kPairs,
         .of_case =
             [](const Case& c) {
               return c.shape.rope.dims > 0 && c.shape.rope.dims < c.shape.head_dim_k;
             },
         .offer = "partial RoPE",
         .with = with_part_rotated,
         .without = [](Case& c) { c.shape.rope.dims = c.shape.head_dim_k; }},
    });

}  // namespace feature_rows
}  // namespace kv
