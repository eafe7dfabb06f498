// A plugin that offers little: attention in f32, one head of 128, causal, pages of 16, no padding.
// With KVERIFY_TEST_REFUSES set it takes a shape, and then refuses each append.
#include <cstdio>
#include <cstdlib>

#include "harness/plugin/testdata/host_attention.h"

using namespace kv::testdata;

namespace {

kv_status refuse(kv_error* why) {
  std::snprintf(why->text, sizeof why->text, "the narrow plugin does nothing else");
  return KV_UNSUPPORTED;
}

bool is_f32(DLDataType type) { return type.code == kDLFloat && type.bits == 32; }

kv_status supports(const kv_attention_shape* s, kv_error* why) {
  const bool types = is_f32(s->query_dtype) && is_f32(s->kv_dtype) && is_f32(s->output_dtype);
  const bool dims = s->head_dim_k == 128 && s->head_dim_v == 128 && s->page_slots == 16 &&
                    s->query_heads == s->kv_heads;
  const bool mask = s->causal == KV_CAUSAL_BOTTOM_RIGHT && s->window_left < 0 &&
                    s->window_right < 0 && s->padding == 0;
  return types && dims && mask && s->softcap == 0 ? host_supports(s, why) : refuse(why);
}

kv_status append(const kv_append_args* args, kv_error* why) {
  return std::getenv("KVERIFY_TEST_REFUSES") != nullptr ? refuse(why) : host_append(args, why);
}

}  // namespace

extern "C" const kv_plugin* kverify_plugin_v1(void) {
  static const kv_kernel_level kernel = {sizeof kernel, supports,    host_plan,
                                         append,        host_attend, nullptr};
  static const kv_plugin plugin = {
      .struct_bytes = sizeof plugin,
      .abi = KV_PLUGIN_ABI,
      .name = "narrow",
      .version = "1",
      .conventions = kHostConventions,
      .kernel = &kernel,
      .engine = nullptr,
  };
  return &plugin;
}
