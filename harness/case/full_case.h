// Purpose: one case for tests in which every field differs from its default and every operation and
// every optional member occurs.
// Contract: check_case accepts it; Timeline refuses it as unsupported.
#pragma once

#include "harness/case/case.h"

namespace kv {

inline Case full_case() {
  const RequestId a(1), b(2);
  Case c;
  c.name = "everything";
  c.comment = "tab\t, newline\n, quote \", backslash \\, \xc3\xa9, \xf0\x9f\x90\x99";
  c.shape = {.layers = 2,
             .query_heads = 6,
             .kv_heads = 3,
             .head_dim_k = 96,
             .head_dim_v = 64,
             .query_dtype = DType::kBf16,
             .kv_dtype = DType::kE4m3,
             .output_dtype = DType::kF32,
             .scale = 0.1f,
             .softcap = 50,
             .alibi = true,
             .sinks = true,
             .rope = {RopePairing::kNeox, 48, 500000.5},
             .kv_scale = KvScale::kHead};
  c.mask = {
      Causal::kTopLeft, 128, 0, MaskEncoding::kAdditive, DType::kBf16, true, true, false, true, 5};
  c.pool = {32, 99, PageOrder::kFarApart, CacheLayout::kHeadSlot, Poison::kNan, 1.5};
  c.data.design = Design::kCensus;
  c.data.seed = 0xffffffffffffffff;
  c.data.digest = 0x8000000000000001;
  c.data.overrides = {{0, a, 3, 1, 5, 95, -0.0}, {2, b, 1, 0, 2, 63, 1e-300}};
  c.data.tensors_file = "t.safetensors";
  c.data.view = {3, 2, 5, 3, -120.5};
  c.ops = {op::Admit{a, 10, 0},
           op::Admit{b, 20, 7, -5, a, 4, 3, 90},
           op::Append{a, 3},
           op::Step{{{a, 3, 1, 2, 4, {-1, 0, 0}, 2, 1}, {.request = b}}, true, true, true},
           op::Fork{a, b},
           op::Reorder{{a, b}, {b, b}},
           op::Truncate{a, 9},
           op::Shift{a, 2, 4},
           op::Cancel{a},
           op::Finish{b},
           op::Preempt{a, true},
           op::Preempt{a, false},
           op::Resume{a},
           op::Evict{4},
           op::Defrag{},
           op::Save{a},
           op::Restore{b, a},
           op::Complete{2},
           op::FailAllocation{3},
           op::Hostile{op::Hostile::Kind::kForeignHandle, b}};
  c.exec = {"split", 64, 24,  0xfedcba9876543210, Rounding::kMmaHopper, 42, 32, {"first.json"},
            "pages", 9,  true};
  c.engine = {.groups = {{1, -1}, {1, 128}},
              .host_page_count = 5,
              .batch_slots = 3,
              .request_max = 7,
              .context_limit = 512,
              .step_tokens_max = 64,
              .async_depth = 1,
              .prefix_cache = false,
              .draft_layers = 1,
              .draft_page_count = 9};
  return c;
}

}  // namespace kv
