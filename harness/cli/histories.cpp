#include "harness/cli/histories.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "harness/case/json.h"
#include "harness/case/text_file.h"
#include "harness/cli/corpus.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/gen/draw_history.h"
#include "harness/history/engine_service.h"
#include "harness/history/explain.h"
#include "harness/history/remote_engine.h"
#include "harness/run/findings.h"
#include "harness/run/wire.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kDrawnDefault = 200;

/// A worker that has loaded the plugin.
Result<std::unique_ptr<WorkerProcess>> start_worker(const BenchOptions& bench) {
  const std::string plugin = bench.plugin_path.empty() ? default_plugin_path() : bench.plugin_path;
  WorkerSpec spec;
  spec.arguments = {"worker", "--device", device_name(bench.device), "--plugin", plugin};
  spec.silence_max = std::chrono::milliseconds(static_cast<int64_t>(bench.call_seconds * 1000));
  spec.memory_bytes_max = bench.memory_mib << 20;
  KV_ASSIGN_OR_RETURN(auto worker, WorkerProcess::start(spec));
  const WorkerEvent event = worker->receive();
  if (const auto* ending = std::get_if<Ending>(&event)) {
    return bad_input("loading the plugin '" + plugin + "' ended the worker: " + ending->message);
  }
  const auto hello = decode_hello(std::get<Frame>(event).payload);
  if (!hello) return bad_input("the plugin '" + plugin + "' damaged its worker");
  if (hello->error) return *hello->error;
  if (!hello->engine_level) return unsupported("the plugin '" + plugin + "' has no engine level");
  return worker;
}

/// One history in the worker; a worker that has ended is replaced before the next.
class HistoryBench {
 public:
  explicit HistoryBench(const BenchOptions& bench) : bench_(bench) {}

  Result<HistoryResult> run(const Case& c, const JudgeSettings& settings) {
    if (worker_ == nullptr) {
      KV_ASSIGN_OR_RETURN(worker_, start_worker(bench_));
    }
    RemoteEngine engine(*worker_);
    KV_RETURN_IF_ERROR(engine.create(c));
    HistoryResult result = run_history(c, engine, settings);
    if (engine.worker_ended()) worker_.reset();
    return result;
  }
  void refresh() { worker_.reset(); }

 private:
  const BenchOptions& bench_;
  std::unique_ptr<WorkerProcess> worker_;
};

bool same_finding(const MaybeFinding& a, const MaybeFinding& b) {
  return a.has_value() == b.has_value() &&
         (!a || (a->check == b->check && a->op_index == b->op_index && a->message == b->message));
}

/// A finding, repeated in a fresh worker with everything kept for its explanation.
struct Certified {
  HistoryResult result;
  bool repeats = false;
};
Result<Certified> certify(HistoryBench& bench, const Case& c, const HistoryResult& first) {
  bench.refresh();
  KV_ASSIGN_OR_RETURN(HistoryResult again, bench.run(c, {.record = true}));
  const bool repeats = same_finding(first.finding, again.finding);
  if (!again.finding) again.finding = first.finding;
  return Certified{std::move(again), repeats};
}

Json stats_json(const HistoryStats& s) {
  return {{"operations", s.operations}, {"calls", s.calls},       {"succeeded", s.succeeded},
          {"refused", s.refused},       {"no_room", s.exhausted}, {"slots_read", s.slots_read}};
}

std::string stats_text(const HistoryStats& s) {
  return fmt::format(
      "{} operations, {} calls: {} ok, {} refused, {} without room; {} slots by "
      "content\n",
      s.operations, s.calls, s.succeeded, s.refused, s.exhausted, s.slots_read);
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
  const Output output(options.json_path);
  HistoryBench bench(options.bench);
  HistoryStats all;
  uint64_t unsupported_count = 0, ran = 0;
  const uint64_t wanted = options.cases.value_or(kDrawnDefault);
  Json json = {
      {"kverify", kVersion}, {"command", "check"}, {"level", "engine"}, {"seed", options.seed}};
  ExitCode code = ExitCode::kPass;
  for (uint64_t i = 0; i < wanted && code == ExitCode::kPass && !interrupted(); ++i) {
    PhiloxSource choices(options.seed, i);
    Case c = draw_history(choices, {.attends = true});
    c.name = fmt::format("history {} of seed {}", i, options.seed);
    const auto result = bench.run(c, {});
    if (!result.ok() && result.error().kind == ErrorKind::kUnsupported) {
      ++unsupported_count;
      continue;
    }
    if (!result.ok()) return result.error();
    ++ran;
    all += result->stats;
    if (!result->finding) continue;
    KV_ASSIGN_OR_RETURN(const Certified found, certify(bench, c, *result));
    const std::string path = fmt::format("{}/history-{}-{}.json", options.out, options.seed, i);
    std::error_code ignored;
    std::filesystem::create_directories(options.out, ignored);
    KV_RETURN_IF_ERROR(save_case(path, c));
    KV_ASSIGN_OR_RETURN(json["failure"], tell(output, c, found, path));
    code = found.repeats ? ExitCode::kFailed : ExitCode::kNondeterministic;
  }
  if (ran == 0 && unsupported_count > 0) code = ExitCode::kUnsupported;
  output.say(fmt::format("histories   {} with seed {}, {} unsupported; {}", ran, options.seed,
                         unsupported_count, stats_text(all)));
  json["histories"] = ran;
  json["unsupported"] = unsupported_count;
  json["stats"] = stats_json(all);
  json["exit_code"] = static_cast<int>(code);
  KV_RETURN_IF_ERROR(output.finish(json));
  return interrupted() ? static_cast<ExitCode>(kInterruptedStatus) : code;
}

Result<ExitCode> replay_history(const ReplayOptions& options, const Case& c) {
  const Output output(options.json_path);
  HistoryBench bench(options.bench);
  KV_ASSIGN_OR_RETURN(const HistoryResult first, bench.run(c, {.record = true}));
  Json json = {{"kverify", kVersion}, {"command", "replay"}, {"level", "engine"}};
  ExitCode code = ExitCode::kPass;
  if (first.finding) {
    KV_ASSIGN_OR_RETURN(const Certified found, certify(bench, c, first));
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
