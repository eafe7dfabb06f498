// The smallest plugin that works: a kernel level of four functions, and what it promises.
#include "harness/plugin/testdata/host_attention.h"

using namespace kv::testdata;

extern "C" const kv_plugin* kverify_plugin_v1(void) {
  static const char* const variants[] = {"host", nullptr};
  static const kv_kernel_level kernel = {sizeof kernel, host_supports, host_plan,
                                         host_append,   host_attend,   variants};
  static const kv_plugin plugin = {
      .struct_bytes = sizeof plugin,
      .abi = KV_PLUGIN_ABI,
      .name = "host",
      .version = "1",
      .conventions = {.struct_bytes = sizeof(kv_conventions),
                      .lse_base = KV_LSE_NATURAL,
                      .lse_layout = KV_LSE_TOKEN_MAJOR,
                      .empty_row_lse = KV_EMPTY_LSE_MINUS_INF,
                      .pad_rows = KV_PAD_ROWS_COMPUTED,
                      .promises = KV_PROMISE_DETERMINISTIC},
      .kernel = &kernel,
      .engine = nullptr,
  };
  return &plugin;
}
