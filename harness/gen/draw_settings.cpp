#include "harness/gen/draw_settings.h"

#include <array>

namespace kv {
namespace {

constexpr float kLn2 = 0x1.62e43p-1f;  // scores in powers of two
constexpr float kInverseRoot128 = 0x1.6a09e6p-4f;

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

Shape draw_shape(ChoiceSource& choices, const Swarm& swarm) {
  Shape shape;
  const DType type =
      swarm.types ? choices.pick({DType::kF16, DType::kBf16, DType::kF32}) : DType::kF16;
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = type;
  if (swarm.wide_heads && choices.one_in(2)) shape.head_dim_k = shape.head_dim_v = 128;
  draw_heads(choices, swarm.sharing, shape);
  if (swarm.layers && choices.one_in(4)) shape.layers = 2;
  shape.scale = shape.head_dim_k == 64 ? 0.125f : kInverseRoot128;
  if (swarm.scales && choices.one_in(3)) {
    shape.scale = choices.pick({1.0f, 0.1f, 0.0625f, -0.125f, 0.0f});
  }
  return shape;
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
  if (swarm.layouts && choices.one_in(2)) pool.layout = CacheLayout::kHeadSlot;
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
  c.shape = draw_shape(choices, swarm);
  c.mask.causal = choices.pick({Causal::kBottomRight, Causal::kBottomRight, Causal::kNone});
  c.pool = draw_pool(choices, swarm);
  if (swarm.designs) c.data.design = draw_design(choices);
  if (c.data.design == Design::kDyadic) c.shape.scale = kLn2;
  // Subset select needs a score of -64 within the range of fp16.
  if (c.data.design == Design::kSubsetSelect) c.shape.scale = 0.125f;
  c.data.seed = choices.bits64();
  c.exec.schedule_seed = choices.one_in(2) ? choices.bits64() : 0;
  return c;
}

}  // namespace kv
