// Purpose: attention and append in plain C++ on the host, over cudaMemcpy: a plugin without
// kernels. Contract: the plugin ABI's semantics for dense f32, f16 and bf16 without modifiers other
// than softcap, window and causal. No launches, so it runs wherever a CUDA runtime is loaded.
#pragma once

#include "harness/plugin/kverify_plugin.h"

namespace kv::testdata {

kv_status host_supports(const kv_attention_shape* shape, kv_error* why);
kv_status host_plan(const kv_attention_shape* shape, const kv_batch* batch, kv_plan* out,
                    kv_error* why);
kv_status host_append(const kv_append_args* args, kv_error* why);
kv_status host_attend(const kv_attend_args* args, kv_error* why);

/// What a plugin over these functions keeps to.
inline constexpr kv_conventions kHostConventions = {.struct_bytes = sizeof(kv_conventions),
                                                    .lse_base = KV_LSE_NATURAL,
                                                    .lse_layout = KV_LSE_TOKEN_MAJOR,
                                                    .empty_row_lse = KV_EMPTY_LSE_MINUS_INF,
                                                    .pad_rows = KV_PAD_ROWS_COMPUTED,
                                                    .promises = KV_PROMISE_DETERMINISTIC};

/// The runtime that kverify has loaded.
int copy_bytes(void* to, const void* from, size_t bytes, int kind);
int allocate_bytes(void** memory, size_t bytes);  // cudaMalloc
int free_bytes(void* memory);
int undefine_bytes(void* memory, size_t bytes);  // CPU device: as if nobody had written them

}  // namespace kv::testdata
