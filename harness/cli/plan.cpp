// `kverify plan`: bytes of a K/V cache, what fits, who is admitted, what to choose.
#include <fmt/format.h>

#include <algorithm>

#include "harness/case/text_file.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/plan/advice.h"
#include "harness/plan/capacity.h"
#include "harness/trace/serve.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kConfigBytesMax = 1u << 20;
constexpr uint64_t kAdmissionRowStepsMax = uint64_t{1} << 32;  // about ten seconds of counting

/// What is printed and what is written, side by side.
struct Report {
  std::string text;
  Json json;

  void line(const char* what, const std::string& says) {
    text += fmt::format("{:<12}{}\n", what, says);
  }
};

std::string bytes_text(uint64_t bytes) {
  return fmt::format("{} bytes ({:.3f} GiB)", bytes, static_cast<double>(bytes) / (1u << 30));
}

void report_model(const KvModel& model, const CacheSize& size, Report& report) {
  const CacheLayoutChoice& choice = size.choice();
  std::string windows;
  for (const LayerGroup& group : model.groups) {
    if (group.window_slots > 0)
      windows += fmt::format("; {} layers keep {} slots", group.layers, group.window_slots);
  }
  if (model.without_cache > 0) {
    windows += fmt::format(
        "; {} more layers have no K/V cache of their own, and what state they "
        "keep is not counted",
        model.without_cache);
  }
  const std::string cache =
      model.latent_dim > 0 ? fmt::format("one latent vector of {}", model.latent_dim)
                           : fmt::format("{} KV heads of {}", model.kv_heads, model.head_dim_k);
  report.line("model", fmt::format("{}: {} layers, {} query heads on {}; K/V {}, {} ranks{}",
                                   model.type, model.layers(), model.query_heads, cache,
                                   dtype_name(choice.dtype), choice.ranks, windows));
  report.line("token",
              fmt::format("{} bytes on each rank ({} each layer), {} on all", size.token_bytes(),
                          size.layer_token_bytes(), size.token_bytes_all_ranks()));
  report.json["model"] = {{"type", model.type},
                          {"layers", model.layers()},
                          {"layers_without_cache", model.without_cache},
                          {"query_heads", model.query_heads},
                          {"kv_heads", model.kv_heads},
                          {"head_dim_k", model.head_dim_k},
                          {"head_dim_v", model.head_dim_v},
                          {"latent_dim", model.latent_dim},
                          {"kv_dtype", dtype_name(choice.dtype)},
                          {"ranks", choice.ranks},
                          {"page_slots", choice.page_slots}};
  report.json["token_bytes"] = size.token_bytes();
  report.json["token_bytes_all_ranks"] = size.token_bytes_all_ranks();
}

/// `limit`: tokens that the model can, 0: it does not say.
void report_workload(const CacheSize& size, const Workload& load, uint64_t limit, Report& report) {
  const uint64_t one = size.request_bytes(load.context);
  report.line("request", fmt::format("{} tokens: {} on each rank", load.context, bytes_text(one)));
  if (limit > 0 && load.context > limit) {
    report.line("", fmt::format("more than the {} tokens that the model says it can", limit));
  }
  report.line("workload", fmt::format("{} requests: {} on each rank", load.batch,
                                      bytes_text(one * load.batch)));
  report.json["request"] = {{"tokens", load.context}, {"bytes", one}};
  report.json["workload"] = {{"requests", load.batch}, {"bytes", one * load.batch}};
}

void report_capacity(const CacheSize& size, const Workload& load, uint64_t context_max,
                     Report& report) {
  const DeviceMemory memory{*load.cache_bytes};
  report.line("memory",
              fmt::format("{} of each rank for the cache", bytes_text(*load.cache_bytes)));
  Json& json = report.json["capacity"];
  json["cache_bytes"] = memory.cache_bytes;
  json["largest_batch"] = Json::array();
  for (const CapacityPoint& point : capacity_curve(size, memory, context_max)) {
    report.line("", fmt::format("context {:>9}: batch {}", point.context, point.batch));
    json["largest_batch"].push_back({{"context", point.context}, {"batch", point.batch}});
  }
  const uint64_t context = largest_context(size, memory, load.batch, context_max);
  report.line("", fmt::format("batch {}: context {}", load.batch, context));
  json["largest_context"] = {{"batch", load.batch}, {"context", context}};
}

Result<void> report_admission(const CacheSize& size, const Workload& load, Report& report) {
  const CacheLayoutChoice& choice = size.choice();
  const uint64_t page_bytes = size.token_bytes() * choice.page_slots;
  ServeOptions options{.batch_slots = static_cast<uint32_t>(load.batch_limit),
                       .page_slots = choice.page_slots,
                       .pool_pages = *load.cache_bytes / page_bytes,
                       .context_limit = load.context,
                       .token_bytes = size.token_bytes()};
  if (options.pool_pages == 0) {
    return bad_input(fmt::format("--memory-gib: expected room for a page of {} bytes, got {} bytes",
                                 page_bytes, *load.cache_bytes));
  }
  uint64_t row_steps = 0;
  for (const TraceRequest& r : load.trace) row_steps += r.output_tokens;
  if (row_steps > kAdmissionRowStepsMax) {
    return bad_input(fmt::format("--trace: expected at most {} sampled tokens, got {}",
                                 kAdmissionRowStepsMax, row_steps));
  }
  const Served served = serve(load.trace, options);
  std::vector<uint64_t> waits;
  for (const ServedRequest& r : served.requests) {
    if (!r.refused) waits.push_back(r.admitted.step - r.arrived.step);
  }
  const uint64_t p50 = percentile(waits, 50), p99 = percentile(waits, 99);
  report.line("admission",
              fmt::format("{} requests, {} refused (longer than {} tokens or the pool); decode "
                          "only, all there at the start",
                          served.requests.size(), served.refused, load.context));
  report.line("", fmt::format("{} steps, {:.2f} requests at once on average, {} at most; {} of {} "
                              "pages reserved at most",
                              served.steps,
                              served.steps == 0 ? 0
                                                : static_cast<double>(served.row_steps) /
                                                      static_cast<double>(served.steps),
                              served.batch_peak, served.pages_peak, options.pool_pages));
  report.line("", fmt::format("steps in the queue: p50 {}, p99 {}", p50, p99));
  report.json["admission"] = {{"requests", served.requests.size()},
                              {"refused", served.refused},
                              {"steps", served.steps},
                              {"row_steps", served.row_steps},
                              {"batch_peak", served.batch_peak},
                              {"pool_pages", options.pool_pages},
                              {"pages_peak", served.pages_peak},
                              {"queue_steps_p50", p50},
                              {"queue_steps_p99", p99}};
  return {};
}

// What the option says, else what a quantised model says of its cache, else the model's own.
Result<DType> kv_dtype_of(const PlanOptions& options, const KvModel& model) {
  if (options.kv_dtype) return *options.kv_dtype;
  if (model.kv_dtype) return *model.kv_dtype;
  if (model.dtype) return *model.dtype;
  return bad_input(options.config_path +
                   ": torch_dtype: expected a number format there or in --kv-dtype, got nothing");
}

// An option that changes nothing is a mistake of who gave it.
Result<void> check_options(const PlanOptions& options) {
  if (options.requests && options.trace_path.empty()) {
    return bad_input(
        fmt::format("--requests: expected --trace beside it, got {} of none", *options.requests));
  }
  if (options.weights_gib > 0 && !options.memory_gib && !options.advise) {
    return bad_input(
        fmt::format("--weights-gib: expected --memory-gib or --advise beside it, got "
                    "{} alone",
                    options.weights_gib));
  }
  return {};
}

Result<uint64_t> context_of(const PlanOptions& options, const KvModel& model) {
  if (options.context) return *options.context;
  if (model.context_limit > 0) return model.context_limit;
  return bad_input(options.config_path +
                   ": max_position_embeddings: expected a context length there or in --context, "
                   "got nothing");
}

Result<Workload> workload_of(const PlanOptions& options, uint64_t context,
                             const std::vector<TraceRequest>& trace) {
  Workload load{.context = context,
                .batch = options.batch.value_or(1),
                .batch_limit = options.batch.value_or(std::max<size_t>(trace.size(), 1)),
                .trace = trace};
  const auto bytes = [](double gib) { return static_cast<uint64_t>(gib * (1u << 30)); };
  load.weight_bytes = bytes(options.weights_gib);
  if (!options.memory_gib) return load;
  if (*options.memory_gib <= options.weights_gib) {
    return bad_input(
        fmt::format("--memory-gib: expected more than the {} GiB of the weights, got "
                    "{}",
                    options.weights_gib, *options.memory_gib));
  }
  load.cache_bytes = bytes(*options.memory_gib) - load.weight_bytes;
  return load;
}

Result<std::vector<TraceRequest>> trace_of(const PlanOptions& options) {
  if (options.trace_path.empty()) return std::vector<TraceRequest>();
  if (!options.memory_gib) return bad_input("--trace: expected --memory-gib beside it, got none");
  KV_ASSIGN_OR_RETURN(auto trace, read_trace(options.trace_path));
  if (options.requests && *options.requests < trace.size()) trace.resize(*options.requests);
  return trace;
}

}  // namespace

Result<ExitCode> plan(const PlanOptions& options) {
  const Output output(options.json_path);
  KV_RETURN_IF_ERROR(check_options(options));
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(options.config_path, kConfigBytesMax));
  KV_ASSIGN_OR_RETURN(const KvModel model, read_kv_model(text, options.config_path));
  KV_ASSIGN_OR_RETURN(const DType dtype, kv_dtype_of(options, model));
  KV_ASSIGN_OR_RETURN(
      const CacheSize size,
      CacheSize::create(
          model, {.dtype = dtype, .ranks = options.ranks, .page_slots = options.page_slots}));
  KV_ASSIGN_OR_RETURN(const uint64_t context, context_of(options, model));
  KV_ASSIGN_OR_RETURN(const auto trace, trace_of(options));
  KV_ASSIGN_OR_RETURN(const Workload load, workload_of(options, context, trace));

  uint64_t total = 0;
  if (__builtin_mul_overflow(size.request_bytes(context), load.batch, &total)) {
    return bad_input(
        fmt::format("--batch: expected a workload below 2^64 bytes, got {} requests", load.batch));
  }

  Report report;
  report.json["kverify"] = kVersion;
  report.json["command"] = "plan";
  report_model(model, size, report);
  report_workload(size, load, model.context_limit, report);
  if (load.cache_bytes) {
    report_capacity(size, load, std::max(context, model.context_limit), report);
  }
  if (!trace.empty()) KV_RETURN_IF_ERROR(report_admission(size, load, report));
  if (options.advise) {
    KV_ASSIGN_OR_RETURN(const auto advice, advise(model, size, load));
    report.json["advice"] = Json::array();
    for (const Advice& a : advice) {
      report.line("advice", fmt::format("{}: {}, because {}", a.what, a.choice, a.reason));
      report.json["advice"].push_back(
          {{"what", a.what}, {"choice", a.choice}, {"reason", a.reason}});
    }
  }
  output.say(report.text);
  KV_RETURN_IF_ERROR(output.finish(report.json));
  return ExitCode::kPass;
}

}  // namespace kv::cli
