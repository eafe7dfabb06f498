#include "harness/cli/histories.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>

#include "harness/case/json.h"
#include "harness/case/text_file.h"
#include "harness/cli/corpus.h"
#include "harness/cli/history_bench.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/output.h"
#include "harness/cli/processor_time.h"
#include "harness/cli/version.h"
#include "harness/gen/draw_history.h"
#include "harness/history/engine_service.h"
#include "harness/history/explain.h"
#include "harness/run/findings.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDrawnDefault = 200;
constexpr double kValueSteps = 0.25;  // of the steps with queries: outputs against the reference
constexpr size_t kToldMax = 1000;     // failures in the JSON; all are counted

bool same_finding(const MaybeFinding& a, const MaybeFinding& b) {
  return a.has_value() == b.has_value() &&
         (!a || (a->check == b->check && a->op_index == b->op_index && a->message == b->message));
}

/// A finding, repeated in a fresh worker with everything kept for its explanation.
struct Certified {
  HistoryResult result;
  bool repeats = false;
};
Result<Certified> certify(HistoryBench& bench, const Case& c, const HistoryResult& first,
                          double value_steps) {
  bench.refresh();
  KV_ASSIGN_OR_RETURN(HistoryResult again,
                      bench.run(c, {.value_steps = value_steps, .record = true}));
  const bool repeats = same_finding(first.finding, again.finding);
  if (!again.finding) again.finding = first.finding;
  return Certified{std::move(again), repeats};
}

Json stats_json(const HistoryStats& s) {
  return {{"operations", s.operations},
          {"calls", s.calls},
          {"succeeded", s.succeeded},
          {"refused", s.refused},
          {"no_room", s.exhausted},
          {"slots_read", s.slots_read},
          {"value_steps", s.values.steps},
          {"value_steps_judged", s.values.steps_judged},
          {"value_rows", s.values.rows},
          {"value_elements", s.values.elements},
          {"twins", s.twins},
          {"twin_rows", s.values.shared}};
}

std::string stats_text(const HistoryStats& s) {
  const ValueCounts& v = s.values;
  const double fraction =
      v.steps == 0 ? 0 : static_cast<double>(v.steps_judged) / static_cast<double>(v.steps);
  return fmt::format(
      "{} operations, {} calls: {} ok, {} refused, {} without room; {} slots by content\n"
      "values      {} of {} steps with queries ({:.3f}), {} rows, {} elements against the "
      "reference{}\n"
      "twins       {} histories again under other circumstances: {} rows of equal tokens held "
      "against the first run's, {} against its own\n",
      s.operations, s.calls, s.succeeded, s.refused, s.exhausted, s.slots_read, v.steps_judged,
      v.steps, fraction, v.rows, v.elements, v.not_offered ? "; the engine has no attention" : "",
      s.twins, v.shared, v.repeats);
}

/// Tells it; writes the trace beside the case where there is a case file.
Result<Json> tell(const Output& output, const Case& c, const Certified& found,
                  const std::string& case_path) {
  const HistoryFinding& f = *found.result.finding;
  output.say("\n" + explain_history(c, f, found.result.records));
  if (!found.repeats) output.say("note        it did not come again in a fresh process\n");
  Json json = finding_json(c, f, found.result.records);
  json["repeats"] = found.repeats;
  if (!case_path.empty()) {
    const std::string trace_path = case_path + ".trace.json";
    KV_RETURN_IF_ERROR(
        write_text_file(trace_path, chrome_trace(c, found.result.records).dump() + "\n"));
    output.say(fmt::format("case        {}\ntrace       {}\n", case_path, trace_path));
    json["case"] = case_path;
  }
  return json;
}

/// `check --level engine`: draws histories until enough ran, the time is over or one has failed.
class HistoryCheck {
 public:
  explicit HistoryCheck(const CheckOptions& options)
      : options_(options), output_(options.json_path), bench_(options.bench) {}

  Result<ExitCode> run() {
    const Clock::time_point started = Clock::now();
    const uint64_t wanted = options_.cases.value_or(options_.minutes || options_.processor_seconds
                                                        ? std::numeric_limits<uint64_t>::max()
                                                        : kDrawnDefault);
    const std::chrono::duration<double, std::ratio<60>> minutes(options_.minutes.value_or(0));
    for (uint64_t i = 0; i < wanted && !interrupted(); ++i) {
      if (options_.minutes && Clock::now() - started >= minutes) break;
      if (options_.processor_seconds && processor_seconds() >= *options_.processor_seconds) break;
      KV_RETURN_IF_ERROR(judge(i));
      if (found_ > 0 && !options_.keep_going) break;
    }
    return finish();
  }

 private:
  Result<void> judge(uint64_t index) {
    PhiloxSource choices(options_.seed, index);
    Case c = draw_history(choices, {.attends = true});
    draw_twin(choices, c);
    c.name = fmt::format("history {} of seed {}", index, options_.seed);
    const auto result = bench_.run(c, {.value_steps = kValueSteps});
    if (!result.ok() && result.error().kind == ErrorKind::kUnsupported) {
      ++unsupported_;
      return {};
    }
    if (!result.ok()) return result.error();
    ++ran_;
    stats_ += result->stats;
    if (!result->finding) return {};
    KV_ASSIGN_OR_RETURN(const Certified found, certify(bench_, c, *result, kValueSteps));
    ++found_;
    repeating_ += found.repeats;
    const std::string path =
        fmt::format("{}/history-{}-{}.json", options_.out, options_.seed, index);
    std::error_code ignored;
    std::filesystem::create_directories(options_.out, ignored);
    KV_RETURN_IF_ERROR(save_case(path, c));
    KV_ASSIGN_OR_RETURN(Json json, tell(output_, c, found, path));
    if (failures_.size() < kToldMax) failures_.push_back(std::move(json));
    return {};
  }

  ExitCode exit_code() const {
    if (repeating_ > 0) return ExitCode::kFailed;
    if (found_ > 0) return ExitCode::kNondeterministic;
    return ran_ == 0 && unsupported_ > 0 ? ExitCode::kUnsupported : ExitCode::kPass;
  }

  Result<ExitCode> finish() {
    const ExitCode code = exit_code();
    output_.say(fmt::format("histories   {} with seed {}, {} unsupported, {} failed; {}", ran_,
                            options_.seed, unsupported_, found_, stats_text(stats_)));
    Json json = {
        {"kverify", kVersion}, {"command", "check"}, {"level", "engine"}, {"seed", options_.seed}};
    json["histories"] = ran_;
    json["unsupported"] = unsupported_;
    json["failed"] = found_;
    json["stats"] = stats_json(stats_);
    json["failures"] = failures_;
    json["exit_code"] = static_cast<int>(code);
    KV_RETURN_IF_ERROR(output_.finish(json));
    return interrupted() ? static_cast<ExitCode>(kInterruptedStatus) : code;
  }

  const CheckOptions& options_;
  Output output_;
  HistoryBench bench_;
  HistoryStats stats_;
  uint64_t unsupported_ = 0, ran_ = 0, found_ = 0, repeating_ = 0;
  Json failures_ = Json::array();
};

}  // namespace

FrameServer serve_engine(const LoadedPlugin& plugin, const CudaRuntime& runtime) {
  const auto device_findings = [&runtime] {
    std::vector<std::string> all;
    for (const DeviceFinding& finding : take_findings(runtime)) {
      all.push_back(fmt::format("{} in kernel {}", finding.message, finding.kernel));
    }
    return all;
  };
  auto service = std::make_shared<EngineService>(plugin.api->engine, device_findings);
  return [service](std::span<const std::byte> payload) { return service->serve(payload); };
}

Result<ExitCode> check_histories(const CheckOptions& options) {
  return HistoryCheck(options).run();
}

Result<ExitCode> replay_history(const ReplayOptions& options, const Case& c) {
  const Output output(options.json_path);
  HistoryBench bench(options.bench);
  KV_ASSIGN_OR_RETURN(const HistoryResult first, bench.run(c, {.value_steps = 1, .record = true}));
  Json json = {{"kverify", kVersion}, {"command", "replay"}, {"level", "engine"}};
  ExitCode code = ExitCode::kPass;
  if (first.finding) {
    KV_ASSIGN_OR_RETURN(const Certified found, certify(bench, c, first, 1));
    KV_ASSIGN_OR_RETURN(json["failure"], tell(output, c, found, options.case_path));
    code = found.repeats ? ExitCode::kFailed : ExitCode::kNondeterministic;
  } else {
    output.say(fmt::format("{}: pass: {}", options.case_path, stats_text(first.stats)));
  }
  json["stats"] = stats_json(first.stats);
  json["exit_code"] = static_cast<int>(code);
  KV_RETURN_IF_ERROR(output.finish(json));
  return code;
}

}  // namespace kv::cli
