#include "harness/run/kernel_run.h"

#include "harness/case/timeline.h"
#include "harness/plugin/device_config.h"
#include "harness/plugin/text.h"
#include "harness/run/findings.h"
#include "harness/run/step_run.h"

namespace kv {
namespace {

/// A stream of ours. Not the default stream, and not ordered by it: work that a plugin launches
/// elsewhere is not waited for by accident.
class Stream {
 public:
  explicit Stream(const CudaRuntime& runtime) : runtime_(runtime) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) runtime_.destroy_stream(stream_);
  }
  Result<void*> create() {
    constexpr unsigned kNonBlocking = 1;
    const int code = runtime_.create_stream(&stream_, kNonBlocking);
    if (code == 0) return stream_;
    return environment_error("cudaStreamCreateWithFlags failed: " + runtime_.describe(code));
  }

 private:
  const CudaRuntime& runtime_;
  void* stream_ = nullptr;
};

uint32_t device_rounding(Rounding rounding) {
  static_assert(static_cast<int>(Rounding::kDown) == KV_SIMT_ROUNDING_DOWN);
  static_assert(static_cast<int>(Rounding::kMmaHopper) == KV_SIMT_ROUNDING_MMA_HOPPER);
  return static_cast<uint32_t>(rounding);
}

class KernelRun {
 public:
  KernelRun(const Case& c, const Bench& bench,
            const std::function<void(const OpObservation&)>& sink)
      : case_(c), bench_(bench), sink_(sink), stream_(bench.runtime), shape_(plugin_shape(c)) {}

  RunEnd run() {
    const Result<void> outcome = run_all();
    if (!outcome.ok()) fail(outcome.error());
    pools_.clear();
    if (bench_.runtime.control != nullptr) bench_.runtime.control->check_leaks();
    end_.findings = take_findings(bench_.runtime);
    end_.warp_instructions = warp_instructions();
    return std::move(end_);
  }

 private:
  Result<void> run_all() {
    bench_.status.enter(Phase::kPreparing);
    if (bench_.plugin.api->kernel == nullptr)
      return unsupported("the plugin does not offer the kernel level");
    KV_ASSIGN_OR_RETURN(Timeline timeline, Timeline::create(case_));
    KV_RETURN_IF_ERROR(configure_device());
    KV_RETURN_IF_ERROR(ask_support());
    if (case_.exec.cascade_slots > 0 && merge_of(*bench_.plugin.api->kernel) == nullptr)
      return unsupported("exec.cascade_slots: the plugin does not merge states");
    if (case_.exec.graph && !promises_graphs(*bench_.plugin.api))
      return unsupported("exec.graph: the plugin does not promise that attend may be captured");
    if (case_.shape.value_in_key && !knows_value_in_key(*bench_.plugin.api->kernel))
      return unsupported("shape.value_in_key: the plugin was built before there was such a thing");
    bench_.status.enter(Phase::kPreparing);
    KV_ASSIGN_OR_RETURN(void* const stream, stream_.create());
    KV_RETURN_IF_ERROR(create_pools());
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      end_.op_index = i;
      bench_.status.op_index = i;
      KV_ASSIGN_OR_RETURN(const bool go_on, run_operation(timeline, stream));
      if (!go_on) return {};
    }
    if (case_.exec.variant.empty() || forced_variant_ran_) return {};
    return unsupported("exec.variant: \"" + printable(case_.exec.variant) +
                       "\" is offered for no step of the case");
  }

  /// False when the plugin refused or failed: what follows would have no meaning.
  Result<bool> run_operation(Timeline& timeline, void* stream) {
    retire_pages(timeline);
    const PlannedStep step = timeline.apply(end_.op_index);
    OpObservation observation;
    if (step.rows.empty()) {
      observation.op_index = end_.op_index;
      observation.status = OpStatus::kOk;
    } else {
      const StepContext context{case_, bench_, shape_, stream, pools_};
      KV_ASSIGN_OR_RETURN(observation, run_step(context, timeline, step));
    }
    observation.findings = take_findings(bench_.runtime);
    if (observation.status == OpStatus::kUnsupported && case_.exec.split_slots != 0)
      return unsupported(observation.message);
    forced_variant_ran_ = forced_variant_ran_ || observation.variant == case_.exec.variant;
    sink_(observation);
    return observation.status == OpStatus::kOk;
  }

  /// The pages of a request that ends hold bytes which nobody may use any more.
  void retire_pages(const Timeline& timeline) {
    std::visit(
        [&](const auto& op) {
          using Operation = std::decay_t<decltype(op)>;
          if constexpr (std::is_same_v<Operation, op::Finish> ||
                        std::is_same_v<Operation, op::Cancel>) {
            for (LayerPools& layer : pools_) {
              const auto& pages = timeline.sequence(op.request).pages;
              layer.each([&](PoolMemory& pool) { pool.retire(pages); });
              layer.key_scale.retire(pages);
              layer.value_scale.retire(pages);
            }
          }
        },
        case_.ops[end_.op_index]);
  }

  Result<void> configure_device() const {
    const kv_simt_control_v1* control = bench_.runtime.control;
    if (control == nullptr) return {};
    if (control->reset() != 0)
      return environment_error("the CPU device refused to start anew: " +
                               printable(control->last_error()));
    return change_device(control, "the CPU device refused its configuration",
                         [&](kv_simt_config& config) {
                           config.checks = bench_.checks;
                           config.schedule_seed = case_.exec.schedule_seed;
                           config.rounding = device_rounding(case_.exec.rounding);
                           config.rounding_seed = case_.exec.rounding_seed;
                         });
  }

  Result<void> ask_support() const {
    bench_.status.enter(Phase::kSupports);
    kv_error why = {};
    why.struct_bytes = sizeof why;
    const kv_status status = bench_.plugin.api->kernel->supports(&shape_, &why);
    if (status == KV_OK) return {};
    const std::string reason = printable_array(why.text);
    if (status == KV_UNSUPPORTED && !reason.empty()) return unsupported(reason);
    return unsupported("supports answered " + std::to_string(status) +
                       ", expected 0, or 2 with a reason" +
                       (reason.empty() ? "" : "; it said: " + reason));
  }

  Result<void> create_pools() {
    pools_.reserve(case_.shape.layers);
    for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
      KV_ASSIGN_OR_RETURN(PoolMemory key,
                          PoolMemory::create(case_, {layer, false}, bench_.runtime));
      KV_ASSIGN_OR_RETURN(
          ScaleMemory key_scale,
          ScaleMemory::create(case_, {.layer = layer, .value = false}, bench_.runtime));
      KV_ASSIGN_OR_RETURN(
          ScaleMemory value_scale,
          ScaleMemory::create(case_, {.layer = layer, .value = true}, bench_.runtime));
      pools_.push_back({std::move(key), {}, std::move(key_scale), std::move(value_scale)});
      if (case_.shape.value_in_key) continue;
      KV_ASSIGN_OR_RETURN(pools_.back().value,
                          PoolMemory::create(case_, {layer, true}, bench_.runtime));
    }
    return {};
  }

  void fail(const Error& error) {
    end_.message = error.message;
    end_.outcome =
        error.kind == ErrorKind::kUnsupported ? RunOutcome::kUnsupported : RunOutcome::kEnvironment;
  }

  uint64_t warp_instructions() const {
    kv_simt_counters counters = {};
    counters.struct_bytes = sizeof counters;
    if (bench_.runtime.control != nullptr) bench_.runtime.control->counters(&counters);
    return counters.warp_instructions;
  }

  const Case& case_;
  const Bench& bench_;
  const std::function<void(const OpObservation&)>& sink_;
  Stream stream_;
  kv_attention_shape shape_;
  std::vector<LayerPools> pools_;
  bool forced_variant_ran_ = false;
  RunEnd end_;
};

}  // namespace

RunEnd run_kernel_case(const Case& c, const Bench& bench,
                       const std::function<void(const OpObservation&)>& sink) {
  return KernelRun(c, bench, sink).run();
}

PluginFacts plugin_facts(const LoadedPlugin& plugin) {
  const kv_conventions& c = plugin.api->conventions;
  return {.name = plugin.name,
          .version = plugin.version,
          .lse_base = c.lse_base,
          .lse_layout = c.lse_layout,
          .empty_row_lse = c.empty_row_lse,
          .pad_rows = c.pad_rows,
          .promises = c.promises,
          .variants = plugin.variants};
}

}  // namespace kv
