#include "harness/run/step_run.h"

#include <algorithm>
#include <cstring>

#include "harness/case/cascade.h"
#include "harness/case/head_inputs.h"
#include "harness/plugin/device_config.h"
#include "harness/plugin/text.h"
#include "harness/run/batch.h"
#include "harness/run/cascade_memory.h"
#include "harness/run/plugin_call.h"
#include "harness/run/step_data.h"
#include "harness/run/step_memory.h"
#include "harness/run/stream_graph.h"

namespace kv {
namespace {

constexpr uint64_t kWorkspaceBytesMax = uint64_t{4} << 30;

class StepRun {
 public:
  StepRun(const StepContext& context, const Timeline& timeline, const PlannedStep& step)
      : context_(context),
        timeline_(timeline),
        step_(step),
        batch_(make_batch(context.c, timeline, step)),
        call_(context.bench, observation_) {
    observation_.op_index = step.op_index;
    observation_.status = OpStatus::kOk;
  }

  Result<OpObservation> run() {
    context_.bench.status.enter(Phase::kPreparing);
    KV_ASSIGN_OR_RETURN(tables_, StepTables::upload(batch_, context_.bench.runtime));
    if (plan()) {
      KV_ASSIGN_OR_RETURN(workspace_,
                          DeviceBuffer::allocate(context_.bench.runtime, plan_.workspace_bytes));
      for (uint32_t layer = 0; layer < context_.c.shape.layers; ++layer) {
        context_.bench.status.layer = layer;
        KV_RETURN_IF_ERROR(run_layer(layer));
        if (observation_.status != OpStatus::kOk) break;
      }
    }
    KV_RETURN_IF_ERROR(look_for_trespasses());
    KV_RETURN_IF_ERROR(read_pages());
    return std::move(observation_);
  }

 private:
  bool plan() {
    const Exec& exec = context_.c.exec;
    kv_batch batch = {};
    batch.struct_bytes = sizeof batch;
    batch.rows = batch_.rows;
    batch.query_lengths = batch_.query_lengths.data();
    batch.kv_lengths = batch_.kv_lengths.data();
    batch.split_slots = exec.split_slots;
    batch.variant = exec.variant.empty() ? nullptr : exec.variant.c_str();
    plan_.struct_bytes = sizeof plan_;
    plan_.profile.struct_bytes = sizeof plan_.profile;
    if (batch.variant != nullptr && !is_offered(batch)) batch.variant = nullptr;
    const bool planned = call_.run(Phase::kPlan, [&](const kv_kernel_level& plugin, kv_error* why) {
      return plugin.plan(&context_.shape, &batch, &plan_, why);
    });
    if (!planned) return false;
    observation_.variant = printable_array(plan_.variant);
    const kv_profile& p = plan_.profile;
    observation_.profile = {.tile_slots = p.tile_slots,
                            .order = p.order,
                            .accumulate = p.accumulate,
                            .row_sum_of_rounded = p.row_sum_of_rounded,
                            .maximum_is_exact = p.maximum_is_exact,
                            .splits = p.splits,
                            .probability_code = p.probability_dtype.code,
                            .probability_bits = p.probability_dtype.bits};
    if (plan_.workspace_bytes <= kWorkspaceBytesMax) return true;
    call_.fail("plan asked for " + std::to_string(plan_.workspace_bytes) +
               " bytes of workspace, expected at most " + std::to_string(kWorkspaceBytesMax));
    return false;
  }

  /// Whether the variant that the case forces exists for this batch.
  bool is_offered(const kv_batch& batch) {
    context_.bench.status.enter(Phase::kPlan);
    kv_plan ignored = plan_;
    kv_error why = {};
    why.struct_bytes = sizeof why;
    return context_.bench.plugin.api->kernel->plan(&context_.shape, &batch, &ignored, &why) !=
           KV_UNSUPPORTED;
  }

  Result<void> run_layer(uint32_t layer) {
    context_.bench.status.enter(Phase::kPreparing);
    LayerPools& pools = context_.pools[layer];
    KV_ASSIGN_OR_RETURN(LayerMemory memory, make_layer_memory(layer));
    for (ScaleMemory* scales : {&pools.key_scale, &pools.value_scale})
      KV_RETURN_IF_ERROR(scales->write(context_.c, timeline_, step_));
    pools.each([&](PoolMemory& pool) { pool.open_for_writing(batch_.written_pages); });
    // Before append: nothing of ours then stands between the plugin's two calls, which it must
    // order itself.
    if (batch_.query_tokens > 0)
      KV_RETURN_IF_ERROR(memory.spoil_outputs(workspace_, context_.c.pool.poison));
    bool go_on = batch_.appended_tokens == 0 || append(pools, memory);
    StreamGraph captured(context_.bench.runtime);
    StreamGraph* const graph = context_.c.exec.graph ? &captured : nullptr;
    if (go_on && batch_.query_tokens > 0) go_on = attend(pools, memory, graph);
    // Also after a refusal: whatever was launched must have ended before memory is looked at.
    go_on = call_.synchronize(context_.stream) && go_on;
    pools.each([&](PoolMemory& pool) { pool.close(batch_.written_pages); });
    if (go_on && batch_.query_tokens > 0) {
      context_.bench.status.enter(Phase::kReadingBack);
      KV_ASSIGN_OR_RETURN(LayerResult result, memory.read_result(batch_.pad_queries));
      observation_.layers.push_back(std::move(result));
      KV_RETURN_IF_ERROR(repeat_attend(pools, memory, graph));
      KV_RETURN_IF_ERROR(run_cascade(pools, memory, layer));
    }
    for (const ScaleMemory* scales : {&pools.key_scale, &pools.value_scale})
      KV_RETURN_IF_ERROR(scales->add_trespasses(observation_.trespasses));
    return memory.add_trespasses(observation_.trespasses);
  }

  Result<LayerMemory> make_layer_memory(uint32_t layer) {
    const auto upload = [&](TensorRole role, const char* name) -> Result<InputBuffer> {
      std::vector<std::byte> bytes;
      const Case& c = context_.c;
      fill_step_tensor(c, timeline_, step_, {layer, role}, bytes);
      const uint32_t heads = role == TensorRole::kQuery ? c.shape.query_heads : c.shape.kv_heads;
      return InputBuffer::upload_rows(context_.bench.runtime, name, std::move(bytes),
                                      row_gaps(c, heads * row_bytes(c.shape, role)));
    };
    const Shape& s = context_.c.shape;
    const uint64_t output_row =
        uint64_t{s.query_heads} * s.head_dim_v * dtype_bytes(s.output_dtype);
    LayerMemory memory(s, context_.bench.plugin.api->conventions,
                       {.layer = layer,
                        .query_tokens = batch_.query_tokens,
                        .output = row_gaps(context_.c, output_row)});
    KV_ASSIGN_OR_RETURN(memory.key, upload(TensorRole::kKey, "key"));
    const Shape& shape = context_.c.shape;
    if (!shape.value_in_key) {
      KV_ASSIGN_OR_RETURN(memory.value, upload(TensorRole::kValue, "value"));
    }
    KV_ASSIGN_OR_RETURN(memory.query, upload(TensorRole::kQuery, "query"));
    const auto upload_heads = [&](const char* name, auto value_of) -> Result<InputBuffer> {
      std::vector<float> values;
      for (uint32_t head = 0; head < shape.query_heads; ++head)
        values.push_back(value_of(context_.c, HeadPlace{layer, head}));
      return InputBuffer::upload(context_.bench.runtime, name, bytes_of(values));
    };
    if (shape.alibi) {
      KV_ASSIGN_OR_RETURN(memory.alibi_slopes, upload_heads("alibi_slopes", alibi_slope));
    }
    if (shape.sinks) {
      KV_ASSIGN_OR_RETURN(memory.sinks, upload_heads("sinks", sink_logit));
    }
    KV_RETURN_IF_ERROR(memory.allocate_outputs(context_.bench.runtime));
    return memory;
  }

  bool append(const LayerPools& pools, const LayerMemory& memory) {
    const Shape& shape = context_.c.shape;
    const int64_t tokens = batch_.appended_tokens;
    const DLDataType type = dl_type(tensor_dtype(shape, TensorRole::kKey));
    Tensor key_pages = pools.key.tensor(), value_pages = pools.value_tensor(shape);
    const int64_t heads = shape.kv_heads, key_dim = shape.head_dim_k;
    const int64_t value_dim = shape.value_in_key ? key_dim : shape.head_dim_v;
    Tensor key(memory.key.data(), type, {tokens, heads, key_dim},
               {token_stride(context_.c, heads * key_dim), key_dim, 1});
    Tensor value(shape.value_in_key ? memory.key.data() : memory.value.data(), type,
                 {tokens, heads, shape.head_dim_v},
                 {token_stride(context_.c, heads * value_dim), value_dim, 1});
    Tensor table = tables_.block_table(batch_);
    Tensor offsets(tables_.append_offsets.data(), kDlInt32, {int64_t{batch_.rows} + 1});
    Tensor first_slots(tables_.first_slots.data(), kDlInt32, {batch_.rows});
    Tensor positions(tables_.append_positions.data(), kDlInt64, {tokens});
    kv_append_args args = {};
    args.struct_bytes = sizeof args;
    args.shape = &context_.shape;
    args.cache = paged_cache(pools, key_pages, value_pages, table);
    args.key = key.view();
    args.value = value.view();
    args.token_offsets = offsets.view();
    args.first_slots = first_slots.view();
    args.positions = positions.view();
    args.stream = context_.stream;
    return call_.run(Phase::kAppend, [&](const kv_kernel_level& plugin, kv_error* why) {
      return plugin.append(&args, why);
    });
  }

  /// Where attend writes, and which slots it may see.
  struct AttendPlace {
    Tensor key_begin, key_end, output, lse;
  };
  AttendPlace whole_step(const LayerMemory& memory) const {
    return {Tensor(tables_.key_begin.data(), kDlInt32, {batch_.rows}),
            Tensor(tables_.key_end.data(), kDlInt32, {batch_.rows}), memory.output_tensor(),
            memory.lse_tensor()};
  }

  /// `graph` (nullptr: none) is captured the first time, and launched each time.
  bool attend(const LayerPools& pools, const LayerMemory& memory, StreamGraph* graph) {
    AttendPlace place = whole_step(memory);
    return attend(pools, memory, place, graph);
  }

  bool attend(const LayerPools& pools, const LayerMemory& memory, AttendPlace& place,
              StreamGraph* graph) {
    const Shape& shape = context_.c.shape;
    const int64_t tokens = batch_.query_tokens, rows = batch_.rows;
    Tensor key_pages = pools.key.tensor(), value_pages = pools.value_tensor(shape);
    Tensor table = tables_.block_table(batch_);
    const int64_t heads = shape.query_heads, key_dim = shape.head_dim_k;
    Tensor query(memory.query.data(), dl_type(shape.query_dtype), {tokens, heads, key_dim},
                 {token_stride(context_.c, heads * key_dim), key_dim, 1});
    Tensor query_offsets(tables_.query_offsets.data(), kDlInt32, {rows + 1});
    Tensor kv_lengths(tables_.kv_lengths.data(), kDlInt32, {rows});
    kv_attend_args args = {};
    args.struct_bytes = sizeof args;
    args.shape = &context_.shape;
    args.plan = &plan_;
    args.cache = paged_cache(pools, key_pages, value_pages, table);
    args.query = query.view();
    args.query_offsets = query_offsets.view();
    args.kv_lengths = kv_lengths.view();
    args.key_begin = place.key_begin.view();
    args.key_end = place.key_end.view();
    args.output = place.output.view();
    args.lse = place.lse.view();
    args.workspace = workspace_.data();
    const MaskTensor& m = batch_.mask;
    Tensor mask(tables_.mask.data(), m.type, {m.shape[0], m.shape[1], m.shape[2], m.shape[3]});
    Tensor tree(tables_.tree.data(), kDlUint32, {tokens, batch_.tree.columns});
    Tensor tree_first(tables_.tree_first_slots.data(), kDlInt32, {rows});
    Tensor positions(tables_.query_positions.data(), kDlInt64, {tokens});
    const DLTensor mask_view = mask.view(), tree_view = tree.view(), first_view = tree_first.view();
    const DLTensor positions_view = positions.view();
    if (shape.rope.pairing != RopePairing::kNone) args.positions = &positions_view;
    if (!m.bytes.empty()) args.mask = &mask_view;
    if (!batch_.tree.words.empty()) {
      args.tree_mask = &tree_view;
      args.tree_first_slots = &first_view;
    }
    args.alibi_slopes = static_cast<const float*>(memory.alibi_slopes.data());
    args.sinks = static_cast<const float*>(memory.sinks.data());
    args.stream = context_.stream;
    const auto call = [&](const kv_kernel_level& plugin, kv_error* why) {
      return plugin.attend(&args, why);
    };
    if (graph != nullptr) return call_.run_from(*graph, context_.stream, Phase::kAttend, call);
    return call_.run(Phase::kAttend, call);
  }

  Result<void> run_cascade(const LayerPools& pools, const LayerMemory& memory, uint32_t layer) {
    const Case& c = context_.c;
    const uint32_t parts = cascade_parts(c, step_);
    if (parts == 0) return {};
    KV_ASSIGN_OR_RETURN(
        CascadeMemory cascade,
        CascadeMemory::create(c, context_.bench.plugin.api->conventions, context_.bench.runtime,
                              {.layer = layer, .tokens = batch_.query_tokens, .parts = parts}));
    bool go_on = true;
    for (uint32_t part = 0; part < parts && go_on; ++part) {
      context_.bench.status.enter(Phase::kPreparing);
      KV_RETURN_IF_ERROR(cascade.set_ranges(c, step_, batch_, part, context_.bench.runtime));
      AttendPlace place{cascade.key_begin(batch_.rows), cascade.key_end(batch_.rows),
                        cascade.part_output(part), cascade.part_lse(part)};
      go_on = attend(pools, memory, place, nullptr);
      go_on = call_.synchronize(context_.stream) && go_on;
    }
    cascade.close_states();
    go_on = go_on && merge(cascade);
    go_on = call_.synchronize(context_.stream) && go_on;
    KV_RETURN_IF_ERROR(cascade.add_trespasses(observation_.trespasses));
    if (!go_on) return {};
    context_.bench.status.enter(Phase::kReadingBack);
    KV_ASSIGN_OR_RETURN(CascadeResult result, cascade.read(batch_.pad_queries));
    observation_.cascades.push_back(std::move(result));
    return {};
  }

  bool merge(const CascadeMemory& cascade) {
    Tensor outputs = cascade.outputs(), lses = cascade.lses();
    AttendPlace merged = whole_step(cascade.merged());
    kv_merge_args args = {};
    args.struct_bytes = sizeof args;
    args.shape = &context_.shape;
    args.outputs = outputs.view();
    args.lses = lses.view();
    args.output = merged.output.view();
    args.lse = merged.lse.view();
    args.stream = context_.stream;
    return call_.run(Phase::kMerge, [&](const kv_kernel_level& plugin, kv_error* why) {
      return merge_of(plugin)(&args, why);
    });
  }

  static kv_paged_cache paged_cache(const LayerPools& pools, Tensor& key, Tensor& value,
                                    Tensor& table) {
    kv_paged_cache cache = {};
    cache.struct_bytes = sizeof cache;
    cache.key = key.view();
    cache.value = value.view();
    cache.block_table = table.view();
    cache.key_scale = pools.key_scale.data();
    cache.value_scale = pools.value_scale.data();
    return cache;
  }

  Result<void> repeat_attend(const LayerPools& pools, LayerMemory& memory, StreamGraph* graph) {
    const Exec& exec = context_.c.exec;
    for (uint32_t repeat = 1; repeat < exec.repeat; ++repeat) {
      KV_RETURN_IF_ERROR(set_schedule_seed(exec.schedule_seed + repeat));
      KV_RETURN_IF_ERROR(memory.spoil_outputs(workspace_, context_.c.pool.poison));
      if (!attend(pools, memory, graph) || !call_.synchronize(context_.stream)) break;
      KV_ASSIGN_OR_RETURN(const LayerResult again, memory.read_result(batch_.pad_queries));
      add_repeat_differences(context_.c.shape, observation_.layers.back(), again, repeat,
                             observation_.repeat_differences);
    }
    if (exec.repeat > 1) return set_schedule_seed(exec.schedule_seed);
    return {};
  }

  Result<void> set_schedule_seed(uint64_t seed) const {
    return change_device(context_.bench.runtime.control, "the CPU device refused a schedule seed",
                         [&](kv_simt_config& config) { config.schedule_seed = seed; });
  }

  Result<void> look_for_trespasses() {
    KV_RETURN_IF_ERROR(tables_.add_trespasses(observation_.trespasses));
    KV_ASSIGN_OR_RETURN(const auto damage, workspace_.damaged_red_zone("workspace"));
    if (damage) observation_.trespasses.push_back(*damage);
    return {};
  }

  Result<void> read_pages() {
    for (LayerPools& layer : context_.pools) {
      KV_RETURN_IF_ERROR(read_pages(layer.key));
      if (layer.value) KV_RETURN_IF_ERROR(read_pages(*layer.value));
    }
    return {};
  }
  Result<void> read_pages(PoolMemory& pool) {
    KV_ASSIGN_OR_RETURN(auto images, pool.changed_pages(batch_.written_pages));
    if (observation_.status == OpStatus::kOk) pool.report_undefined(batch_.written_slots);
    std::move(images.begin(), images.end(), std::back_inserter(observation_.pages));
    KV_ASSIGN_OR_RETURN(const auto damage, pool.damaged_red_zone());
    if (damage) observation_.trespasses.push_back(*damage);
    return {};
  }

  const StepContext& context_;
  const Timeline& timeline_;
  const PlannedStep& step_;
  const Batch batch_;
  OpObservation observation_;
  PluginCall call_;
  StepTables tables_;
  DeviceBuffer workspace_;
  kv_plan plan_ = {};
};

}  // namespace

Result<OpObservation> run_step(const StepContext& context, const Timeline& timeline,
                               const PlannedStep& step) {
  return StepRun(context, timeline, step).run();
}

}  // namespace kv
