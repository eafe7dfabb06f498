// `kverify trace run --level engine`: a serving trace through an engine that owns its cache.
#include "harness/cli/trace_replay.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "harness/certify/engine_worker.h"
#include "harness/certify/interrupt.h"
#include "harness/cli/output.h"
#include "harness/cli/trace_serve.h"
#include "harness/cli/version.h"
#include "harness/engine/remote_engine.h"
#include "harness/history/explain.h"
#include "harness/serving/engine_replay.h"
#include "harness/serving/fork_or_encode.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kShortContext = 8192;  // beside none, in the table of waits

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
long children_mib() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss / 1024;
}

class Replaying {
 public:
  explicit Replaying(const TraceOptions& options) : options_(options), output_(options.json_path) {}

  Result<ExitCode> run() {
    KV_ASSIGN_OR_RETURN(trace_, read_trace(options_.trace_path));
    if (options_.requests < trace_.size()) trace_.resize(options_.requests);
    json_ = {{"kverify", kVersion}, {"command", "trace run"}, {"level", "engine"}};
    KV_RETURN_IF_ERROR(replay());
    if (options_.completions > 0 && code_ == ExitCode::kPass) KV_RETURN_IF_ERROR(fork_or_encode());
    if (code_ == ExitCode::kPass) KV_RETURN_IF_ERROR(tell_of_other_settings());
    json_["exit_code"] = static_cast<int>(code_);
    KV_RETURN_IF_ERROR(output_.finish(json_));
    return code_;
  }

 private:
  EngineReplayOptions replay_options() const {
    return {.batch_slots = options_.batch_slots,
            .chunk_tokens = options_.chunk_tokens,
            .page_slots = page_slots(),
            .pool_pages = options_.pool_pages,
            .step_ns = static_cast<uint64_t>(options_.step_ms * 1e6),
            .sample_one_in = options_.sample_one_in};
  }
  uint32_t page_slots() const {
    return options_.page_slots.value_or(trace_[0].blocks.empty() ? 16 : 256);
  }
  void line(const char* what, const std::string& says) const {
    output_.say(fmt::format("{:<12}{}\n", what, says));
  }

  Result<ReplayResult> replay_once(const EngineReplay& replay) {
    KV_ASSIGN_OR_RETURN(EngineWorker worker, start_engine_worker(options_.bench));
    json_["plugin"] = {{"name", worker.plugin.name}, {"version", worker.plugin.version}};
    RemoteEngine engine(*worker.process);
    KV_RETURN_IF_ERROR(engine.create(replay.history_case()));
    const auto started = Clock::now();
    Progress progress;
    return replay.run(engine, worker.conventions(), [&](uint64_t finished) {
      progress.show(fmt::format("{} of {} requests, {:.0f} s", finished, trace_.size(),
                                seconds_since(started)));
      return !interrupted();
    });
  }

  Result<void> replay() {
    KV_ASSIGN_OR_RETURN(const EngineReplay replay, EngineReplay::create(trace_, replay_options()));
    const Case& c = replay.history_case();
    line("trace", fmt::format("{}: {} requests at their recorded lengths{}", options_.trace_path,
                              trace_.size(),
                              options_.step_ms > 0 ? " and arrivals" : ", all there at the start"));
    line("engine",
         fmt::format("{} pages of {} slots, {} batch slots, chunks of {} tokens, one head "
                     "of {}",
                     c.pool.page_count, c.pool.page_slots, c.engine->batch_slots,
                     c.engine->step_tokens_max, c.shape.head_dim_k));
    const auto started = Clock::now();
    KV_ASSIGN_OR_RETURN(ReplayResult result, replay_once(replay));
    const double seconds = seconds_since(started);
    if (result.stopped) line("stopped", "by its user; what was judged until then:");
    tell(result);
    line("machine",
         fmt::format("{:.1f} s, {:.0f} operations/s, worker {} MiB at most", seconds,
                     static_cast<double>(result.stats.operations) / seconds, children_mib()));
    if (result.stopped) code_ = static_cast<ExitCode>(kInterruptedStatus);
    if (result.served.refused == trace_.size()) {
      line("nothing ran", "every request was refused: --pool-pages is too small for any");
      code_ = ExitCode::kVacuous;
    }
    if (!result.finding) return {};
    if (result.finding->check == CheckClass::kUnsupported) {
      return unsupported(result.finding->message);
    }
    KV_ASSIGN_OR_RETURN(const ReplayResult again, replay_once(replay));
    const bool repeats = again.finding && again.finding->message == result.finding->message;
    const HistoryFinding& f = *result.finding;
    line("finding", fmt::format("{}: operation {}, {}: {}{}", check_name(f.check), f.op_index,
                                f.operation, f.message,
                                repeats         ? ""
                                : again.stopped ? " (the run that was to confirm it was stopped)"
                                                : " (it did not come again in a fresh process)"));
    json_["failure"] = {{"check", check_name(f.check)},
                        {"operation", f.operation},
                        {"message", f.message},
                        {"repeats", repeats}};
    code_ = repeats         ? ExitCode::kFailed
            : again.stopped ? static_cast<ExitCode>(kInterruptedStatus)
                            : ExitCode::kNondeterministic;
    return {};
  }

  void tell(const ReplayResult& r) {
    std::vector<uint64_t> queue, end, queue_bytes, end_bytes;
    for (const ServedRequest& request : r.served.requests) {
      const bool has_ended = !r.stopped || request.finished.step > 0;
      if (request.refused || !has_ended) continue;
      queue.push_back(request.admitted.step - request.arrived.step);
      end.push_back(request.finished.step - request.arrived.step);
      queue_bytes.push_back(request.admitted.bytes - request.arrived.bytes);
      end_bytes.push_back(request.finished.bytes - request.arrived.bytes);
    }
    const auto both = [](const std::vector<uint64_t>& values) {
      return fmt::format("{}/{}", percentile(values, 50), percentile(values, 99));
    };
    line("served", fmt::format("{} steps of {:.2f} rows, {} refused", r.served.steps,
                               share(r.served.row_steps, r.served.steps), r.served.refused));
    line("waits",
         fmt::format("p50/p99: queue {} steps, {} K/V bytes; completion {} steps, {} K/V bytes (of "
                     "{} bytes a token)",
                     both(queue), both(queue_bytes), both(end), both(end_bytes), r.token_bytes));
    line("cache", fmt::format("{} of {} prompt slots found, {} appended; {} pages hit, {} evicted",
                              r.hit_slots, r.prompt_slots, r.appended_slots,
                              r.stats.counters.hit_pages, r.stats.counters.evicted_pages));
    line("judged", fmt::format("{} operations, all by structure; {} slots by their bytes",
                               r.stats.operations, r.stats.slots_read));
    const ValueCounts& v = r.stats.values;
    line("attention",
         fmt::format("{} of {} rows of steps sampled ({:.5f}){}", v.rows, r.rows,
                     share(v.rows, r.rows),
                     v.not_offered ? "; the engine has no attention" : ", against the reference"));
    json_["replay"] = {{"requests", r.served.requests.size()},
                       {"refused", r.served.refused},
                       {"steps", r.served.steps},
                       {"rows", r.rows},
                       {"rows_judged", v.rows},
                       {"prompt_slots", r.prompt_slots},
                       {"hit_slots", r.hit_slots},
                       {"appended_slots", r.appended_slots},
                       {"operations", r.stats.operations},
                       {"slots_read", r.stats.slots_read},
                       {"hit_pages", r.stats.counters.hit_pages},
                       {"evicted_pages", r.stats.counters.evicted_pages}};
  }

  using Way = Completions (*)(const Case&, const ForkOptions&, Engine&);
  Result<Completions> complete(ForkOptions options, Way way, const char* name) {
    KV_ASSIGN_OR_RETURN(EngineWorker worker, start_engine_worker(options_.bench));
    options.conventions = worker.conventions();
    RemoteEngine engine(*worker.process);
    const Case c = fork_case(options);
    KV_RETURN_IF_ERROR(engine.create(c));
    const auto started = Clock::now();
    Completions done = way(c, options, engine);
    line("completions",
         fmt::format("{} of a prompt of {} tokens, {}: {} K/V projections a layer, "
                     "{} steps, {} pages; {:.2f} s",
                     options.completions, options.prompt_tokens, name, done.projected, done.steps,
                     done.pages, seconds_since(started)));
    json_["completions"][name] = {
        {"projected", done.projected}, {"steps", done.steps}, {"pages", done.pages}};
    if (done.finding && done.finding->check == CheckClass::kUnsupported) {
      return unsupported(done.finding->message);
    }
    if (done.finding) {
      line("finding",
           fmt::format("{}: {}", check_name(done.finding->check), done.finding->message));
      code_ = ExitCode::kFailed;
    }
    return done;
  }

  // The same trace through the production manager alone: other pools, batches and limits.
  Result<void> tell_of_other_settings() {
    TraceServeOptions serve{.contexts = {0, kShortContext},
                            .batches = {8, 32},
                            .concurrency = {0, 64},
                            .step_ms = {options_.step_ms}};
    serve.trace_path = options_.trace_path;
    line("", "the manager alone, in other settings:");
    KV_ASSIGN_OR_RETURN(json_["serving"], serving_tables(trace_, serve, output_));
    return {};
  }

  // Of the first request.
  Result<void> fork_or_encode() {
    const ForkOptions options{.completions = options_.completions,
                              .prompt_tokens = trace_[0].prompt_tokens,
                              .output_tokens = trace_[0].output_tokens,
                              .chunk_tokens = options_.chunk_tokens,
                              .page_slots = page_slots()};
    KV_ASSIGN_OR_RETURN(const Completions forked, complete(options, complete_forked, "forked"));
    KV_ASSIGN_OR_RETURN(const Completions again, complete(options, complete_encoded, "encoded"));
    const bool equal = forked.stored == again.stored && forked.outputs == again.outputs;
    line("", fmt::format("{} outputs of decode steps and {} bytes of K and V: {}",
                         forked.outputs.size(), forked.stored.size(),
                         equal ? "the same bits both ways" : "NOT the same bits"));
    json_["completions"]["equal"] = equal;
    if (!equal) code_ = ExitCode::kFailed;
    return {};
  }

  const TraceOptions& options_;
  Output output_;
  std::vector<TraceRequest> trace_;
  Json json_;
  ExitCode code_ = ExitCode::kPass;
};

}  // namespace

Result<ExitCode> trace_replay(const TraceOptions& options) {
  if (options.scale != 1) {
    return bad_input(fmt::format(
        "--scale: expected 1 with --level engine, which replays lengths as recorded, got {}",
        options.scale));
  }
  return Replaying(options).run();
}

}  // namespace kv::cli
