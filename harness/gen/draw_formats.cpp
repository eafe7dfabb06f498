#include "harness/gen/draw_formats.h"

#include <algorithm>

namespace kv {
namespace {

void draw_codes(ChoiceSource& choices, Case& c) {
  c.shape.kv_dtype = choices.pick({DType::kE4m3, DType::kI8, DType::kE5m2});
  c.shape.kv_scale = choices.pick({KvScale::kTensor, KvScale::kHead, KvScale::kToken,
                                   KvScale::kToken, KvScale::kPage, KvScale::kNone});
  // int8 codes without a scale would hold a handful of numbers.
  const bool bare = c.shape.kv_dtype == DType::kI8 && c.shape.kv_scale == KvScale::kNone;
  if (bare) c.shape.kv_scale = KvScale::kToken;
}

/// All of the row, half of it, one pair, all but one: by their relation to a vector of eight.
uint32_t draw_dims(ChoiceSource& choices, uint32_t head_dim) {
  const auto any = static_cast<uint32_t>(2 * choices.between(1, head_dim / 2));
  return choices.pick<uint32_t>(
      {head_dim, head_dim, head_dim, head_dim / 4 * 2, head_dim - 2, 2, any});
}

// A kernel may compute angles in fp32: far from 0 it may turn anywhere, and nothing is said.
constexpr int64_t kFar = 4095;

void draw_rope(ChoiceSource& choices, Case& c) {
  Rope& rope = c.shape.rope;
  rope.pairing = choices.pick({RopePairing::kNeox, RopePairing::kInterleaved});
  rope.dims = draw_dims(choices, c.shape.head_dim_k);
  rope.theta = choices.pick({10000.0, 500000.0, 100.0, 1.0});
}

void draw_offsets(ChoiceSource& choices, Case& c) {
  const int64_t page = c.pool.page_slots;
  const bool moved = choices.one_in(2);
  for (Op& op : c.ops) {
    auto* admit = std::get_if<op::Admit>(&op);
    if (admit == nullptr) continue;
    admit->position_offset = std::min(admit->position_offset, kFar);
    if (moved)
      admit->position_offset =
          choices.pick<int64_t>({0, 1, page, page - 1, 63, 1000, kFar, -1, -page});
  }
}

// All requests by the same, so that those that shared a prefix go on sharing it.
void draw_common_offset(ChoiceSource& choices, Case& c) {
  const auto base = choices.pick<int64_t>({0, 0, 1, 63, 1000, -1});
  for (Op& op : c.ops) {
    auto* admit = std::get_if<op::Admit>(&op);
    if (admit == nullptr) continue;
    admit->position_offset = std::clamp(admit->position_offset, -kFar, kFar - base) + base;
  }
}

// Where pages have scales only whole pages may be dropped: mostly they are.
void drop_whole_pages(ChoiceSource& choices, Case& c) {
  const uint64_t page = c.pool.page_slots;
  for (Op& op : c.ops) {
    auto* shift = std::get_if<op::Shift>(&op);
    if (shift == nullptr || choices.one_in(4)) continue;
    shift->begin = shift->begin / page * page;
    shift->end = (shift->end + page - 1) / page * page;
  }
}

}  // namespace

void draw_formats(ChoiceSource& choices, const OfferSet& offered, Case& c) {
  // Rotated or quantised K that V lies in has no meaning; K and V of two dimensions stay plain.
  const bool plain = c.shape.head_dim_k != c.shape.head_dim_v || c.shape.value_in_key;
  if (choices.one_in(3) && !plain) draw_codes(choices, c);
  if (choices.one_in(3) && !plain) {
    draw_rope(choices, c);
    draw_offsets(choices, c);
  }
  leave_out(offered, c);
}

void draw_history_formats(ChoiceSource& choices, const OfferSet& offered, Case& c) {
  if (choices.one_in(3)) draw_codes(choices, c);
  if (choices.one_in(3)) draw_rope(choices, c);
  leave_out(offered, c);
  if (c.shape.rope.pairing != RopePairing::kNone) draw_common_offset(choices, c);
  if (c.shape.kv_scale == KvScale::kPage) drop_whole_pages(choices, c);
}

}  // namespace kv
