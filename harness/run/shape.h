// Purpose: what a case says about its attention calls, in the plugin's terms.
// Contract: the padding bits are the union over all steps, because supports() is asked once for the
// whole case. The case must have passed Timeline::create.
#pragma once

#include "harness/case/case.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {

kv_attention_shape plugin_shape(const Case& c);

/// Strides, in elements, of [page][slot][head][dim] in the pool's layout, pages close together.
struct PageStrides {
  int64_t page = 0, slot = 0, head = 0;
};
PageStrides page_strides(const Case& c, uint32_t head_dim);

}  // namespace kv
