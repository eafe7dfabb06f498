#include "harness/case/features.h"

#include <algorithm>
#include <vector>

#include "harness/case/mask_bits.h"
#include "harness/case/timeline.h"
#include "harness/case/visibility.h"

namespace kv {
namespace {

constexpr auto kFeatureNames = std::to_array<std::string_view>({
    "empty_row",
    "pad_query_row",
    "queries_exceed_keys",
    "queries_not_keys",
    "queries_equal_keys",
    "no_queries",
    "no_keys",
    "queries_only",
    "decode",
    "prefill_whole",
    "prefill_chunk",
    "padding_left",
    "padding_right",
    "padding_holes",
    "verify_tree",
    "page_straddle",
    "pages_out_of_order",
    "length_mod_page_0",
    "length_mod_page_1",
    "length_mod_page_minus_1",
    "page_reuse",
    "pool_full",
    "multi_row_batch",
    "mixed_batch",
    "ragged_queries",
    "cancel",
    "finish",
    "prefix_shared",
    "position_offset",
    "mha",
    "gqa",
    "mqa",
    "multi_layer",
    "f16",
    "bf16",
    "f32",
    "head_dim_64",
    "head_dim_80",
    "head_dim_96",
    "head_dim_128",
    "head_dim_256",
    "head_dim_other",
    "value_dim",
    "latent",
    "softcap",
    "alibi",
    "sinks",
    "causal_none",
    "causal_top_left",
    "causal_bottom_right",
    "window_left",
    "window_right",
    "mask_packed_bits",
    "mask_bool_keep",
    "mask_bool_block",
    "mask_additive",
    "mask_finite_minimum",
    "mask_broadcast_batch",
    "mask_broadcast_head",
    "mask_by_head",
    "mask_broadcast_query",
    "page_slots_1",
    "page_slots_2_to_8",
    "page_slots_16",
    "page_slots_32_to_64",
    "page_slots_128_to_256",
    "order_identity",
    "order_reversed",
    "order_shuffled",
    "far_pages",
    "layout_slot_head",
    "layout_head_slot",
    "poison_undefined",
    "poison_finite_huge",
    "poison_nan",
    "design_normal",
    "design_uniform_exact",
    "design_dyadic",
    "design_subset_select",
    "design_sparse_code",
    "design_boundary_needles",
    "design_ascending",
    "design_large_scores",
    "design_census",
    "design_constant_value",
    "schedule_seed",
    "rounding_nearest",
    "rounding_random",
    "rounding_up",
    "rounding_down",
    "rounding_mma_ampere",
    "rounding_mma_hopper",
    "split_forced",
    "cascade",
    "repeated",
    "variant_forced",
    "cache_e4m3",
    "cache_e5m2",
    "cache_i8",
    "scale_tensor",
    "scale_head",
    "scale_token",
    "scale_page",
    "rope_neox",
    "rope_interleaved",
    "rope_partial",
});
static_assert(kFeatureNames.size() == kFeatureCount);

/// The feature of an enumerator whose features, kFirst to that of its kLast, stand in its order.
template <Feature kFirst, Feature kFeatureOfLast, auto kLast>
Feature nth(decltype(kLast) value) {
  static_assert(static_cast<size_t>(kFirst) + static_cast<size_t>(kLast) ==
                static_cast<size_t>(kFeatureOfLast));
  return static_cast<Feature>(static_cast<size_t>(kFirst) + static_cast<size_t>(value));
}

Feature page_slots_class(uint32_t slots) {
  if (slots == 1) return Feature::kPageSlots1;
  if (slots <= 8) return Feature::kPageSlots2To8;
  if (slots == 16) return Feature::kPageSlots16;
  return slots <= 64 ? Feature::kPageSlots32To64 : Feature::kPageSlots128To256;
}

Feature head_dim_class(const Shape& shape) {
  if (shape.head_dim_k != shape.head_dim_v) return Feature::kHeadDimOther;
  switch (shape.head_dim_k) {
    case 64:
      return Feature::kHeadDim64;
    case 80:
      return Feature::kHeadDim80;
    case 96:
      return Feature::kHeadDim96;
    case 128:
      return Feature::kHeadDim128;
    case 256:
      return Feature::kHeadDim256;
    default:
      return Feature::kHeadDimOther;
  }
}

Feature sharing_class(const Shape& shape) {
  if (shape.query_heads == shape.kv_heads) return Feature::kMha;
  return shape.kv_heads == 1 ? Feature::kMqa : Feature::kGqa;
}

void count_mask(const Case& c, FeatureSet& met) {
  const Mask& mask = c.mask;
  if (mask.encoding == MaskEncoding::kNone) return;
  met[Feature::kMaskPackedBits] += mask.encoding == MaskEncoding::kPackedBits;
  met[Feature::kMaskBoolKeep] += mask.encoding == MaskEncoding::kBoolKeep;
  met[Feature::kMaskBoolBlock] += mask.encoding == MaskEncoding::kBoolBlock;
  met[Feature::kMaskAdditive] += mask.encoding == MaskEncoding::kAdditive;
  const bool additive = mask.encoding == MaskEncoding::kAdditive;
  met[Feature::kMaskFiniteMinimum] += additive && mask.additive_finite_minimum;
  met[Feature::kMaskBroadcastBatch] += mask.broadcast_batch;
  met[Feature::kMaskBroadcastHead] += mask.broadcast_head;
  met[Feature::kMaskByHead] += mask_heads(c) > 1;
  met[Feature::kMaskBroadcastQuery] += mask.broadcast_query;
}

void count_formats(const Shape& shape, FeatureSet& met) {
  met[Feature::kCacheE4m3] += shape.kv_dtype == DType::kE4m3;
  met[Feature::kCacheE5m2] += shape.kv_dtype == DType::kE5m2;
  met[Feature::kCacheI8] += shape.kv_dtype == DType::kI8;
  met[Feature::kScaleTensor] += shape.kv_scale == KvScale::kTensor;
  met[Feature::kScaleHead] += shape.kv_scale == KvScale::kHead;
  met[Feature::kScaleToken] += shape.kv_scale == KvScale::kToken;
  met[Feature::kScalePage] += shape.kv_scale == KvScale::kPage;
  met[Feature::kRopeNeox] += shape.rope.pairing == RopePairing::kNeox;
  met[Feature::kRopeInterleaved] += shape.rope.pairing == RopePairing::kInterleaved;
  const bool partial = shape.rope.dims > 0 && shape.rope.dims < shape.head_dim_k;
  met[Feature::kRopePartial] += partial;
}

void count_settings(const Case& c, FeatureSet& met) {
  const Shape& shape = c.shape;
  ++met[sharing_class(shape)];
  ++met[head_dim_class(shape)];
  met[Feature::kValueDim] += shape.head_dim_k != shape.head_dim_v;
  met[Feature::kLatent] += shape.value_in_key;
  met[Feature::kMultiLayer] += shape.layers > 1;
  met[Feature::kF16] += shape.query_dtype == DType::kF16;
  met[Feature::kBf16] += shape.query_dtype == DType::kBf16;
  met[Feature::kF32] += shape.query_dtype == DType::kF32;
  ++met[nth<Feature::kCausalNone, Feature::kCausalBottomRight, Causal::kBottomRight>(
      c.mask.causal)];
  met[Feature::kSoftcap] += shape.softcap > 0;
  met[Feature::kAlibi] += shape.alibi;
  met[Feature::kSinks] += shape.sinks;
  met[Feature::kWindowLeft] += c.mask.window_left >= 0;
  met[Feature::kWindowRight] += c.mask.window_right >= 0;
  count_mask(c, met);
  ++met[page_slots_class(c.pool.page_slots)];
  ++met[nth<Feature::kOrderIdentity, Feature::kFarPages, PageOrder::kFarApart>(c.pool.order)];
  ++met[nth<Feature::kLayoutSlotHead, Feature::kLayoutHeadSlot, CacheLayout::kHeadSlot>(
      c.pool.layout)];
  ++met[nth<Feature::kPoisonUndefined, Feature::kPoisonNan, Poison::kNan>(c.pool.poison)];
  ++met[nth<Feature::kDesignNormal, Feature::kDesignConstantValue, Design::kConstantValue>(
      c.data.design)];
  met[Feature::kScheduleSeed] += c.exec.schedule_seed != 0;
  ++met[nth<Feature::kRoundingNearest, Feature::kRoundingMmaHopper, Rounding::kMmaHopper>(
      c.exec.rounding)];
  count_formats(shape, met);
  met[Feature::kSplitForced] += c.exec.split_slots > 0;
  met[Feature::kCascade] += c.exec.cascade_slots > 0;
  met[Feature::kRepeated] += c.exec.repeat > 1;
  met[Feature::kVariantForced] += !c.exec.variant.empty();
}

bool is_decode(const op::StepRow& row, const PlannedRow& plan) {
  return row.append == 1 && row.queries == 1 && plan.kv_length > 1;
}
bool is_prefill(const op::StepRow& row) { return row.append > 1 && row.queries > 1; }

bool some_head_sees_nothing(const Case& c, const Sequence& sequence, const PlannedRow& plan,
                            uint32_t query) {
  if (c.mask.encoding == MaskEncoding::kNone && plan.tree_parents.empty()) {
    return visible_range(c.mask, plan, query).size() == 0;
  }
  for (uint32_t head = 0; head < mask_heads(c); ++head) {
    if (sees_nothing(c, sequence, plan, {query, head})) return true;
  }
  return false;
}

void count_queries(const Case& c, const Sequence& sequence, const PlannedRow& plan,
                   FeatureSet& met) {
  for (uint32_t q = 0; q < plan.queries; ++q) {
    const int64_t slot = query_slot(plan, q);
    const bool pad = slot >= 0 && sequence.slots[static_cast<size_t>(slot)].pad;
    met[Feature::kPadQueryRow] += pad;
    met[Feature::kEmptyRow] += !pad && some_head_sees_nothing(c, sequence, plan, q);
  }
}

void count_row(const op::StepRow& row, const PlannedRow& plan, FeatureSet& met) {
  const bool attends = plan.queries > 0;
  met[Feature::kQueriesExceedKeys] += plan.queries > plan.kv_length;
  met[Feature::kQueriesNotKeys] += attends && plan.queries != plan.kv_length;
  met[Feature::kQueriesEqualKeys] += attends && plan.queries == plan.kv_length;
  met[Feature::kNoQueries] += !attends;
  met[Feature::kNoKeys] += attends && plan.kv_length == 0;
  met[Feature::kQueriesOnly] += attends && plan.append_slots == 0;
  met[Feature::kDecode] += is_decode(row, plan);
  const bool was_empty = plan.kv_length == plan.append_slots;
  met[Feature::kPrefillWhole] += is_prefill(row) && was_empty;
  met[Feature::kPrefillChunk] += is_prefill(row) && !was_empty;
  met[Feature::kPaddingLeft] += row.pad_left > 0;
  met[Feature::kPaddingRight] += row.pad_right > 0;
  met[Feature::kPaddingHoles] += plan.holes;
  const auto& parents = row.tree_parents;
  bool branches = false;
  for (size_t i = 1; i < parents.size(); ++i) branches |= parents[i] != static_cast<int32_t>(i) - 1;
  met[Feature::kVerifyTree] += branches && attends;
}

void count_pages(const Case& c, const Sequence& sequence, FeatureSet& met) {
  const auto& pages = sequence.pages;
  const auto length = static_cast<uint32_t>(sequence.slots.size());
  const uint32_t residue = length % c.pool.page_slots;
  met[Feature::kPageStraddle] += pages.size() > 1;
  met[Feature::kPagesOutOfOrder] +=
      std::adjacent_find(pages.begin(), pages.end(),
                         [](PageId a, PageId b) { return b.value != a.value + 1; }) != pages.end();
  met[Feature::kLengthModPage0] += length > 0 && residue == 0;
  met[Feature::kLengthModPage1] += length > 0 && residue == 1 % c.pool.page_slots;
  met[Feature::kLengthModPageMinus1] += length > 0 && residue == c.pool.page_slots - 1;
}

class Counter {
 public:
  explicit Counter(const Case& c) : case_(c), released_(c.pool.page_count) {}

  void run(Timeline timeline, FeatureSet& met) {
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      const Op& op = case_.ops[i];
      if (const auto* cancel = std::get_if<op::Cancel>(&op)) {
        ++met[Feature::kCancel];
        remember(timeline.sequence(cancel->request));
      } else if (const auto* finish = std::get_if<op::Finish>(&op)) {
        ++met[Feature::kFinish];
        remember(timeline.sequence(finish->request));
      } else if (const auto* admit = std::get_if<op::Admit>(&op)) {
        met[Feature::kPrefixShared] += admit->prefix_tokens > 0;
        met[Feature::kPositionOffset] += admit->position_offset != 0;
      }
      const PlannedStep plan = timeline.apply(i);
      if (const auto* step = std::get_if<op::Step>(&op)) count_step(*step, plan, timeline, met);
    }
  }

 private:
  void remember(const Sequence& sequence) {
    for (const PageId page : sequence.pages) released_[page.value] = true;
  }

  void count_step(const op::Step& step, const PlannedStep& plan, const Timeline& timeline,
                  FeatureSet& met) {
    bool decode = false, prefill = false, ragged = false;
    for (size_t r = 0; r < step.rows.size(); ++r) {
      const PlannedRow& row = plan.rows[r];
      const Sequence& sequence = timeline.sequence(row.request);
      count_row(step.rows[r], row, met);
      count_queries(case_, sequence, row, met);
      count_pages(case_, sequence, met);
      met[Feature::kPageReuse] += std::any_of(sequence.pages.begin(), sequence.pages.end(),
                                              [&](PageId p) { return released_[p.value]; });
      decode = decode || is_decode(step.rows[r], row);
      prefill = prefill || is_prefill(step.rows[r]);
      ragged = ragged || row.queries != plan.rows[0].queries;
    }
    met[Feature::kMultiRowBatch] += step.rows.size() > 1;
    met[Feature::kMixedBatch] += decode && prefill;
    met[Feature::kRaggedQueries] += ragged;
    met[Feature::kPoolFull] += timeline.free_pages().empty();
  }

  const Case& case_;
  std::vector<bool> released_;
};

}  // namespace

std::string_view feature_name(Feature feature) {
  return kFeatureNames[static_cast<size_t>(feature)];
}

FeatureSet features_of(const Case& c) {
  FeatureSet met;
  count_settings(c, met);
  Result<Timeline> timeline = Timeline::create(c);
  if (timeline.ok()) Counter(c).run(std::move(timeline).value(), met);
  return met;
}

}  // namespace kv
