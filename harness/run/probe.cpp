#include "harness/run/probe.h"

#include "harness/plugin/text.h"
#include "harness/run/shape.h"

namespace kv {
namespace {

/// One request of 64 slots for each number of query rows; query heads for each KV head.
struct SmallBatch {
  const char* name;
  std::vector<int32_t> queries;
  uint32_t group = 1;
  bool latent = false;  // one head of 576 dimensions, the first 512 of which are V
};

Case case_of(const SmallBatch& batch, DType type, DType cache) {
  Case c = plain_case();
  if (batch.latent) {
    c.shape.kv_heads = 1;
    c.shape.head_dim_k = 576;
    c.shape.head_dim_v = 512;
    c.shape.value_in_key = true;
  }
  c.shape.query_heads = c.shape.kv_heads * batch.group;
  c.shape.query_dtype = c.shape.output_dtype = type;
  c.shape.kv_dtype = cache;
  return c;
}

/// The variant that the plugin plans; "" when it offers none.
std::string planned(const kv_kernel_level& level, const Case& c, const SmallBatch& small) {
  const kv_attention_shape shape = plugin_shape(c);
  kv_error why = {};
  why.struct_bytes = sizeof why;
  if (level.supports(&shape, &why) != KV_OK) return "";
  const std::vector<int32_t> slots(small.queries.size(), 64);
  kv_batch batch = {};
  batch.struct_bytes = sizeof batch;
  batch.rows = static_cast<uint32_t>(slots.size());
  batch.query_lengths = small.queries.data();
  batch.kv_lengths = slots.data();
  batch.split_slots = c.exec.split_slots;
  batch.variant = c.exec.variant.empty() ? nullptr : c.exec.variant.c_str();
  kv_plan plan = {};
  plan.struct_bytes = sizeof plan;
  plan.profile.struct_bytes = sizeof plan.profile;
  if (level.plan(&shape, &batch, &plan, &why) != KV_OK) return "";
  const std::string name = printable_array(plan.variant);
  return name.empty() ? "(unnamed)" : name;
}

Dispatch dispatch_of(const LoadedPlugin& plugin, Case c, const SmallBatch& batch) {
  const kv_kernel_level& level = *plugin.api->kernel;
  Dispatch row{.type = c.shape.query_dtype,
               .cache = c.shape.kv_dtype,
               .batch = batch.name,
               .chosen = planned(level, c, batch),
               .forceable = {}};
  for (const std::string& variant : plugin.variants) {
    c.exec.variant = variant;
    if (planned(level, c, batch) == variant) row.forceable.push_back(variant);
  }
  return row;
}

bool supports(const kv_plugin& plugin, const Case& c) {
  const kv_kernel_level& level = *plugin.kernel;
  if (c.exec.graph && !promises_graphs(plugin)) return false;
  if (c.exec.cascade_slots > 0 && merge_of(level) == nullptr) return false;
  if (c.shape.value_in_key && !knows_value_in_key(level)) return false;
  return !planned(level, c, {"decode", {1}}).empty();
}

}  // namespace

OfferSet probe_offers(const LoadedPlugin& plugin) {
  if (plugin.api->kernel == nullptr) return OfferSet::all();
  return find_offers(
      [](const void* of, const Case& c) { return supports(*static_cast<const kv_plugin*>(of), c); },
      plugin.api);
}

std::vector<Dispatch> probe_dispatch(const LoadedPlugin& plugin) {
  std::vector<Dispatch> table;
  const kv_kernel_level* level = plugin.api->kernel;
  if (level == nullptr) return table;
  for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
    for (const DType cache : {type, DType::kE4m3, DType::kE5m2, DType::kI8}) {
      for (const SmallBatch& batch : {SmallBatch{"decode", {1, 1}},
                                      {"decode of groups", {1, 1}, 4},
                                      {"prefill", {5, 64}},
                                      {"mixed", {1, 5}},
                                      {"latent decode", {1, 1}, 16, true},
                                      {"latent prefill", {5, 64}, 16, true}}) {
        if (batch.latent && (cache != type || !knows_value_in_key(*level))) continue;
        table.push_back(dispatch_of(plugin, case_of(batch, type, cache), batch));
      }
    }
  }
  return table;
}

}  // namespace kv
