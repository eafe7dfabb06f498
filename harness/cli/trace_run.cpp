// `kverify trace run`: a serving trace against a plugin, judged row by row.
#include <fmt/format.h>

#include <chrono>

#include "harness/certify/examine.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/output.h"
#include "harness/cli/trace_cases.h"
#include "harness/cli/trace_replay.h"
#include "harness/cli/version.h"
#include "harness/report/summary.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "step 12 of 340, 41 %, about 25 s left", from the work that is done.
class Estimate {
 public:
  Estimate(const Case& c, const TraceWork& work, Progress& progress)
      : case_(c), work_(work), progress_(progress) {}

  void note(const OpObservation& observation) {
    if (observation.op_index >= case_.ops.size()) return;
    if (std::holds_alternative<op::Step>(case_.ops[observation.op_index])) ++steps_;
    done_ += work_.op_work[observation.op_index];
    if (done_ == 0 || work_.total_work == 0) return;
    const double share = static_cast<double>(done_) / static_cast<double>(work_.total_work);
    const double left = seconds_since(started_) * (1 - share) / share;
    progress_.show(fmt::format("step {} of {}, {:.0f} %, about {:.0f} s left", steps_, work_.steps,
                               100 * share, left));
  }

 private:
  const Case& case_;
  const TraceWork& work_;
  Progress& progress_;
  Clock::time_point started_ = Clock::now();
  uint64_t steps_ = 0, done_ = 0;
};

std::string introduction(const TraceOptions& options, const TraceCase& trace,
                         const TraceWork& work) {
  const Shape& s = trace.c.shape;
  return fmt::format(
      "trace       {}: {} requests with {} prompt and {} sampled tokens, lengths times {}\n"
      "model       {} layers, {} query heads on {} KV heads of {}, {}; pages of {} slots\n"
      "schedule    {} steps of continuous batching; {} tokens go into the cache, {} query rows\n",
      options.trace_path, trace.requests, trace.prompt_tokens, trace.output_tokens, options.scale,
      s.layers, s.query_heads, s.kv_heads, s.head_dim_k, dtype_name(s.kv_dtype),
      trace.c.pool.page_slots, work.steps, work.appended_tokens, work.query_rows);
}

std::string conclusion(const Examined& examined, const TraceWork& work) {
  const VerdictStats& stats = examined.verdict.stats;
  return fmt::format(
      "judged      {} query rows, {} elements against [R(O-B), R(O+B)], {} cache slots by content\n"
      "largest     |error| / bound {:.4f}\n"
      "pages       {} in use at most\n"
      "verdict     {}{}\n",
      stats.rows_judged, stats.elements_judged, stats.slots_judged, stats.error_bound_ratio_max,
      work.pages_peak, outcome_name(examined.verdict.outcome),
      examined.verdict.message.empty() ? "" : ": " + examined.verdict.message);
}

}  // namespace

Result<ExitCode> trace_run(const TraceOptions& options) {
  if (options.level == "engine") return trace_replay(options);
  const auto started = Clock::now();
  const Output output(options.json_path);
  KV_ASSIGN_OR_RETURN(TraceCase trace, make_trace_case(options));
  const TraceWork work = trace_work(trace.c);
  KV_ASSIGN_OR_RETURN(Examiner examiner, Examiner::start(options.bench));
  const PluginFacts plugin = examiner.hello().plugin;
  output.say(introduction(options, trace, work));
  output.say(fmt::format("plugin      {} {} on device {}\n", plugin.name, plugin.version,
                         device_name(options.bench.device)));
  KV_RETURN_IF_ERROR(examiner.submit(trace.c));
  Progress progress;
  Estimate estimate(trace.c, work, progress);
  KV_ASSIGN_OR_RETURN(Examined examined,
                      examiner.next([&](const OpObservation& seen) { estimate.note(seen); }));
  progress.clear();

  RunSummary summary;
  summary.add(examined.c, examined.verdict);
  output.say(conclusion(examined, work));
  const uint64_t warp_instructions = examined.warp_instructions;
  FindingSink findings(options.out, options.bench, output);
  if (is_finding(examined.verdict)) KV_RETURN_IF_ERROR(findings.add(std::move(examined), ""));
  const double seconds = seconds_since(started);
  output.say(
      fmt::format("time        {:.1f} s, {:.0f} tokens/s, {:.0f} million warp instructions\n",
                  seconds, static_cast<double>(work.appended_tokens) / seconds,
                  static_cast<double>(warp_instructions) / 1e6));

  nlohmann::ordered_json json;
  json["kverify"] = kVersion;
  json["command"] = "trace run";
  json["device"] = device_name(options.bench.device);
  json["plugin"] = {{"name", plugin.name}, {"version", plugin.version}};
  json["trace"] = {{"requests", trace.requests},
                   {"scale", options.scale},
                   {"prompt_tokens", trace.prompt_tokens},
                   {"output_tokens", trace.output_tokens},
                   {"steps", work.steps},
                   {"appended_tokens", work.appended_tokens},
                   {"pages_peak", work.pages_peak}};
  json["summary"] = summary_json(summary);
  json["warp_instructions"] = warp_instructions;
  json["failures"] = findings.json();
  json["exit_code"] = static_cast<int>(summary.exit_code());
  KV_RETURN_IF_ERROR(output.finish(json));
  return summary.exit_code();
}

}  // namespace kv::cli
