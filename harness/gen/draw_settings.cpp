#include "harness/gen/draw_settings.h"

#include <cmath>

namespace kv {
namespace {

constexpr float kLn2 = 0x1.62e43p-1f;  // scores in powers of two

// Group size against the number of KV heads: the relation is what kernels get wrong.
void draw_heads(ChoiceSource& choices, bool sharing, Shape& shape) {
  const auto n = static_cast<uint32_t>(choices.between(1, 3));
  uint32_t kv_heads = n, group = 1;
  switch (sharing ? choices.below(6) : 0) {
    case 0:
      break;  // as many query heads as KV heads
    case 1:
      kv_heads = 1, group = n + 1;
      break;  // one KV head
    case 2:
      group = n;
      break;  // group equals KV heads
    case 3:
      group = n + 1;
      break;  // off by one, hence coprime
    case 4:
      kv_heads = n + 1, group = n;
      break;
    case 5:
      group = 2 * n;
      break;  // a multiple
  }
  shape.kv_heads = kv_heads;
  shape.query_heads = kv_heads * group;
}

/// The usual ones, and odd multiples of eight: a kernel pads them up to a width that it has.
uint32_t draw_head_dim(ChoiceSource& choices) {
  const auto odd = static_cast<uint32_t>(8 * (2 * choices.below(16) + 1));
  return choices.pick<uint32_t>({64, 128, 64, 128, 80, 96, 256, odd});
}

/// K and V of one dimension mostly; else those of prefill for latent attention, or any two.
void draw_head_dims(ChoiceSource& choices, Shape& shape) {
  shape.head_dim_k = shape.head_dim_v = draw_head_dim(choices);
  if (!choices.one_in(6)) return;
  const uint32_t other = draw_head_dim(choices);
  shape.head_dim_k = choices.pick<uint32_t>({shape.head_dim_k, 192, 128});
  shape.head_dim_v = choices.pick<uint32_t>({other, 128, 64});
}

/// Latent attention in its absorbed form, all query heads over one cache of rows that are K and V;
/// sometimes in a size that ordinary kernels take.
void draw_latent(ChoiceSource& choices, Shape& shape) {
  shape.value_in_key = true;
  const bool small = shape.query_dtype == DType::kF32 || choices.one_in(3);
  shape.head_dim_k = small ? choices.pick<uint32_t>({96, 72, 128, 64}) : 576;
  shape.head_dim_v = small ? 64 : 512;
  shape.kv_heads = 1;
  shape.query_heads = choices.pick<uint32_t>({1, 2, 1, 4, 16});
}

Shape draw_shape(ChoiceSource& choices, const Swarm& swarm) {
  Shape shape;
  const DType type =
      swarm.types ? choices.pick({DType::kF16, DType::kBf16, DType::kF32}) : DType::kF16;
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = type;
  if (swarm.wide_heads) draw_head_dims(choices, shape);
  draw_heads(choices, swarm.sharing, shape);
  if (swarm.wide_heads && choices.one_in(10)) draw_latent(choices, shape);
  // A latent layer is as much work as several others.
  if (swarm.layers && choices.one_in(4) && !shape.value_in_key) shape.layers = 2;
  // Both operations are correctly rounded everywhere.
  shape.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim_k)));
  if (swarm.scales && choices.one_in(3)) {
    shape.scale = choices.pick({1.0f, 0.1f, 0.0625f, -0.125f, 0.0f});
  }
  if (swarm.softcaps && choices.one_in(2)) shape.softcap = choices.pick({50.0f, 30.0f, 1.0f, 0.1f});
  shape.alibi = swarm.alibi && choices.one_in(2);
  shape.sinks = swarm.sinks && choices.one_in(2);
  return shape;
}

/// Windows by their relation to a page, a tile and each other; wider than any request, too.
int64_t draw_window(ChoiceSource& choices, const Pool& pool) {
  const int64_t page = pool.page_slots, tile = 64;
  const auto any = static_cast<int64_t>(choices.between(2, 200));
  return choices.pick<int64_t>({page, 0, 1, page - 1, tile - 1, tile, tile + 1, any, 100000});
}

Mask draw_mask(ChoiceSource& choices, const Swarm& swarm, const Pool& pool) {
  Mask mask;
  mask.causal = choices.pick({Causal::kBottomRight, Causal::kBottomRight, Causal::kNone});
  if (swarm.top_left && choices.one_in(3)) mask.causal = Causal::kTopLeft;
  if (!swarm.windows) return mask;
  if (choices.one_in(2)) mask.window_left = draw_window(choices, pool);
  if (choices.one_in(3)) mask.window_right = draw_window(choices, pool);
  return mask;
}

void draw_encoding(ChoiceSource& choices, Mask& mask) {
  mask.encoding = choices.pick({MaskEncoding::kBoolKeep, MaskEncoding::kBoolBlock,
                                MaskEncoding::kPackedBits, MaskEncoding::kAdditive});
  mask.broadcast_batch = choices.one_in(3);
  mask.broadcast_head = !choices.one_in(3);
  mask.broadcast_query = choices.one_in(3);
  mask.additive_dtype = choices.pick({DType::kF32, DType::kF16, DType::kBf16});
  mask.additive_finite_minimum = choices.one_in(2);
}

Pool draw_pool(ChoiceSource& choices, const Swarm& swarm) {
  Pool pool;
  pool.order = PageOrder::kIdentity;
  if (swarm.pages) {
    pool.page_slots = choices.pick<uint32_t>({16, 1, 2, 4, 8, 32, 64, 128, 256});
  }
  if (swarm.orders) {
    pool.order = choices.pick(
        {PageOrder::kShuffled, PageOrder::kShuffled, PageOrder::kReversed, PageOrder::kFarApart});
  }
  if (swarm.layouts)
    pool.layout =
        choices.pick({CacheLayout::kSlotHead, CacheLayout::kHeadSlot, CacheLayout::kInterleaved});
  if (swarm.poisons) {
    pool.poison = choices.pick({Poison::kUndefined, Poison::kFiniteHuge, Poison::kNan});
  }
  return pool;
}

Design draw_design(ChoiceSource& choices) {
  return choices.pick({Design::kNormal, Design::kNormal, Design::kUniformExact,
                       Design::kUniformExact, Design::kSparseCode, Design::kSparseCode,
                       Design::kBoundaryNeedles, Design::kBoundaryNeedles, Design::kAscending,
                       Design::kLargeScores, Design::kConstantValue, Design::kCensus,
                       Design::kDyadic, Design::kSubsetSelect});
}

}  // namespace

Case draw_settings(ChoiceSource& choices, const Swarm& swarm) {
  Case c;
  choices.enter(Part::kShape);
  c.shape = draw_shape(choices, swarm);
  choices.enter(Part::kPool);
  c.pool = draw_pool(choices, swarm);
  choices.enter(Part::kMask);
  c.mask = draw_mask(choices, swarm, c.pool);
  if (swarm.masks && choices.one_in(2)) draw_encoding(choices, c.mask);
  choices.enter(Part::kData);
  if (swarm.designs) c.data.design = draw_design(choices);
  if (c.data.design == Design::kDyadic) c.shape.scale = kLn2;
  // Subset select needs a score of -64 within the range of fp16.
  if (c.data.design == Design::kSubsetSelect) c.shape.scale = 0.125f;
  c.data.seed = choices.bits64();
  return c;
}

}  // namespace kv
