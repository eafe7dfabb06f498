// The host plugin: the engine level alone, without attention.
#include "impl/plugin/engine_level.h"

extern "C" __attribute__((visibility("default"))) const kv_plugin* kverify_plugin_v1(void) {
  static const kv_plugin kPlugin = {.struct_bytes = sizeof(kv_plugin),
                                    .abi = KV_PLUGIN_ABI,
                                    .name = "kvattn-host",
                                    .version = "0.1.0",
                                    .conventions = {.struct_bytes = sizeof(kv_conventions),
                                                    .lse_base = KV_LSE_NATURAL,
                                                    .lse_layout = KV_LSE_TOKEN_MAJOR,
                                                    .empty_row_lse = KV_EMPTY_LSE_MINUS_INF,
                                                    .pad_rows = KV_PAD_ROWS_UNSPECIFIED,
                                                    .promises = 0},
                                    .kernel = nullptr,
                                    .engine = &kvattn::engine_level()};
  return &kPlugin;
}
