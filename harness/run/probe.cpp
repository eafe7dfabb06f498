#include "harness/run/probe.h"

#include "harness/run/shape.h"

namespace kv {
namespace {

bool supports(const kv_kernel_level& level, const Case& c) {
  const kv_attention_shape shape = plugin_shape(c);
  kv_error why = {};
  why.struct_bytes = sizeof why;
  if (level.supports(&shape, &why) != KV_OK) return false;
  if (c.exec.split_slots == 0) return true;
  const int32_t queries = 1, slots = 64;
  kv_batch batch = {};
  batch.struct_bytes = sizeof batch;
  batch.rows = 1;
  batch.query_lengths = &queries;
  batch.kv_lengths = &slots;
  batch.split_slots = c.exec.split_slots;
  kv_plan plan = {};
  plan.struct_bytes = sizeof plan;
  plan.profile.struct_bytes = sizeof plan.profile;
  return level.plan(&shape, &batch, &plan, &why) == KV_OK;
}

}  // namespace

AxisSet probe_axes(const LoadedPlugin& plugin) {
  const kv_kernel_level* level = plugin.api->kernel;
  if (level == nullptr || !supports(*level, plain_case())) return AxisSet::all();
  AxisSet offered;
  for (size_t i = 0; i < kAxisCount; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (supports(*level, with_axis(axis))) offered.add(axis);
  }
  return offered;
}

}  // namespace kv
