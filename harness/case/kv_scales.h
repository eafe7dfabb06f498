// Purpose: the dequantisation scales of K and V, which a case gives to append and attend alike.
// Contract: an element of the cache is code * scale. Scales are pure functions of the data seed and
// of what they belong to: the tensor, a KV head, the token of a slot, the first token of a page; so
// equal prefixes have equal scales, and a slot that another token takes gets another one. In half
// of the cases they are powers of two. Their range lets ordinary values use most of the format, and
// some go beyond it. K's follow Data::view's key exponent as K itself does. Without libm. Those of
// tensors and heads that a recorded call brought along (side_car.h) are its own.
// Example: const float s = slot_scale(c, sequence, 17, {.layer = 0, .value = true, .head = 2});
#pragma once

#include "harness/case/case.h"
#include "harness/case/timeline.h"

namespace kv {

struct ScalePlace {
  uint32_t layer = 0;
  bool value = false;
  uint32_t head = 0;  // KV head
};

/// The scale whose token, the slot's own or the first of its page, has this history; it is not
/// looked at where tensors or heads have scales. 1 without scales.
float scale_of(const Case& c, uint64_t history, const ScalePlace& place);
/// Of an element that lies in this slot of the sequence; 1 without scales.
float slot_scale(const Case& c, const Sequence& sequence, uint64_t slot, const ScalePlace& place);

/// The tensor of scales of K, or of V, of one layer, as kverify_plugin.h has it.
struct ScaleLayout {
  uint64_t size = 0;  // elements; 0: there is none
  uint64_t page_stride = 0, slot_stride = 0, head_stride = 0;
};
ScaleLayout scale_layout(const Case& c);

}  // namespace kv
