// The command line of kverify. It and cli_options.h alone know CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>

#include "harness/case/limits.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/commands.h"
#include "harness/cli/histories.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/version.h"
#include "harness/plan/cache_size.h"
#include "harness/run/worker_loop.h"

namespace kv::cli {
namespace {

constexpr const char* kFooter = R"(
Exit codes: 0 pass, 1 a property failed, 2 bad input or usage, 3 something is missing on this
machine, 4 a finding did not come again, 5 too little ran to say anything, 6 time limit,
7 everything was unsupported, 130 interrupted. Where several apply: 3, 2, 1, 4, 5, 6, 7.)";

void add_bench(CLI::App& command, BenchOptions& bench, std::string& device) {
  command.add_option("--device", device, "cpu (no GPU needed, checks every access) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--plugin", bench.plugin_path,
                  "library to check (default: our own kvattn, beside this program)")
      ->check(named());
  command
      .add_option("--call-seconds", bench.call_seconds,
                  "longest call into the plugin; large cases get more")
      ->check(number(0.1, 1e6))
      ->capture_default_str();
  command
      .add_option("--memory-mib", bench.memory_mib,
                  "memory of a worker process (default: 12 GiB or 70 % of the machine's)")
      ->check(whole(64, uint64_t{1} << 30));
}

/// Options of all commands, where CLI11 writes them.
struct Parsed {
  CheckOptions check;
  MutantsOptions mutants;
  MutateOptions mutate;
  ReplayOptions replay;
  ReportOptions report;
  ProfileOptions profile;
  ExecOptions exec;
  TraceOptions trace;
  TraceServeOptions serve;
  PlanOptions plan;
  MinimizeOptions minimize;
  ExplainOptions explain;
  FuzzOptions fuzz;
  TriageOptions triage;
  BenchOptions bench;  // of every command that runs something
  std::optional<std::string> json_path;
  std::string device = "cpu";
  ShowOptions show;
  WorkerOptions worker;
};

void add_ci_output(CLI::App& command, CheckOptions& check) {
  command.add_option("--junit", check.junit_path, "write JUnit XML")->check(named());
  command.add_option("--sarif", check.sarif_path, "write SARIF 2.1.0")->check(named());
  command.add_option("--html", check.html_path, "write an HTML page with pictures")->check(named());
  command.add_flag("--annotations", check.annotations, "print GitHub annotations");
  command
      .add_option("--baseline", check.baseline_path,
                  "file of known faults, a fingerprint a line; they do not fail the run")
      ->check(named());
  command
      .add_option("--write-baseline", check.write_baseline_path,
                  "write the faults of this run as a baseline")
      ->check(named());
}

void add_check(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("check", "draw cases, run and judge them");
  command->add_option("--cases", p.check.cases, "cases to draw (default: 200)")
      ->check(whole(0, 1'000'000'000));
  command->add_option("--minutes", p.check.minutes, "stop drawing after this time")
      ->check(number(0, 1e6));
  command
      ->add_option("--processor-seconds", p.check.processor_seconds,
                   "stop drawing after so much processor time")
      ->check(number(0, 1e8));
  command->add_option("--seed", p.check.seed, "of the drawn cases")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--corpus", p.check.corpus, "folder with seeds/ and regression/")
      ->check(named())
      ->capture_default_str();
  command->add_option("--out", p.check.out, "folder for the cases of findings")
      ->check(named())
      ->capture_default_str();
  command->add_flag("--exhaustive", p.check.exhaustive,
                    "all small cases: block tables, masks, lengths; no corpus, no drawn ones");
  command
      ->add_option("--shard", p.check.shard,
                   "i/n: of the small cases the i-th share of n, to go on with")
      ->capture_default_str();
  command->add_flag("--keep-going", p.check.keep_going,
                    "do not stop after 10 distinct or 50 findings");
  command
      ->add_option("--minimize-attempts", p.check.minimize_attempts,
                   "candidates for the smaller case of each distinct fault; 0: none")
      ->check(whole(0, 1'000'000))
      ->capture_default_str();
  command->add_flag("--first", p.check.first, "stop at the first finding");
  add_ci_output(*command, p.check);
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
  command
      ->add_option("--level", p.check.level,
                   "kernel: attention calls; engine: histories of an engine with its own cache")
      ->check(CLI::IsMember({"kernel", "engine"}))
      ->capture_default_str();
}

void add_mutants(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("mutants", "are the bugs of corpus/mutants found?");
  MutantsOptions& o = p.mutants;
  command->add_option("--patches", o.patches, "folder of the patches")->capture_default_str();
  command->add_option("--plugins", o.plugins, "folder of the built mutants (default: build them)");
  command->add_option("--corpus", o.corpus, "as of check")->capture_default_str();
  command->add_option("--only", o.only, "those whose name has this; may be repeated");
  command->add_option("--seed", o.seed, "the first seed")->capture_default_str();
  command->add_option("--seeds", o.seeds, "campaigns for each")->check(whole(1, 1000));
  command->add_option("--cases", o.cases, "most that a campaign draws")->check(whole(1, 1u << 30));
  command->add_option("--seconds", o.seconds, "most processor time for a campaign")
      ->check(number(1, 1e5));
  command->add_option("--results", o.results, "keep results in this file, and continue from it")
      ->check(named());
  command
      ->add_option("--table", o.table, "bring this table up to date (corpus/mutants/killed.json)")
      ->check(named());
  command
      ->add_option("--matrix", o.matrix,
                   "go on behind the first finding, and write what only each property kills")
      ->check(named());
  command->add_option("--jobs", o.jobs, "campaigns at once")->check(whole(1, 1024));
  add_json(*command, p.json_path);
}

void add_mutate_options(CLI::App& command, Parsed& p) {
  MutateOptions& o = p.mutate;
  command.add_option("--kernel", o.kernel, "part of the names of the kernels that are changed")
      ->capture_default_str();
  command.add_option("--mutations", o.mutations, "tried, spread evenly; 0: all")
      ->check(whole(0, 1u << 30))
      ->capture_default_str();
  command.add_option("--cases", o.cases, "of the suite")->check(whole(1, 1u << 20));
  command.add_option("--seed", o.seed, "of the suite")->capture_default_str();
  command.add_option("--seconds", o.seconds, "most for each mutant")->check(number(0.1, 1e5));
  command.add_option("--plugin", p.bench.plugin_path, "library whose kernels are changed");
}

void add_mutate(CLI::App& app, Parsed& p) {
  MutateOptions& o = p.mutate;
  CLI::App* command =
      app.add_subcommand("mutate", "change the PTX, one instruction at a time: is it noticed?");
  add_mutate_options(*command, p);
  command->add_option("--jobs", o.jobs, "processes")->check(whole(1, 1024));
  command->add_option("--score-min", o.score_min, "fail below this")->check(number(0, 1));
  command->add_option("--judgements", o.judgements, "file of equivalent mutants, and why");
  command->add_option("--dir", o.folder, "keep results in this folder, and continue from it")
      ->check(named());
  add_json(*command, p.json_path);
  CLI::App* shard = app.add_subcommand("mutate-shard", "internal: a part of mutate");
  shard->group("");
  add_mutate_options(*shard, p);
  shard->add_option("--shard", o.shard);
  shard->add_option("--shards", o.shards)->check(whole(1, 1024));
  shard->add_option("--dir", o.folder)->required();
}

void add_replay(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("replay", "run and judge one case");
  command->add_option("case", p.replay.case_path, "case file")->required();
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
  CLI::App* report = app.add_subcommand("report", "replay cases and draw what fails, as HTML");
  report->add_option("path", p.report.path, "case file, or folder of cases")->required();
  report->add_option("-o,--out", p.report.out, "HTML file to write")
      ->check(named())
      ->capture_default_str();
  add_bench(*report, p.bench, p.device);
  CLI::App* show = app.add_subcommand("show", "say what a case does");
  show->add_option("case", p.show.case_path, "case file")->required();
  show->add_option("--reach", p.show.reach_path,
                   "write the case with rows and data that would expose the loss of any key")
      ->check(named());
  show->add_flag("--coverage", p.show.coverage,
                 "which lost, doubled or exchanged keys, V rows, pages and heads it would expose");
}

void add_minimize(CLI::App& app, Parsed& p) {
  CLI::App* command =
      app.add_subcommand("minimize", "make a failing case small; it goes on failing the same way");
  command->add_option("case", p.minimize.case_path, "case file")->required();
  command->add_option("--out", p.minimize.out, "case file to write (default: CASE.min.json)")
      ->check(named());
  command->add_option("--seconds", p.minimize.seconds, "stop after this time")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--attempts", p.minimize.attempts, "stop after this many candidates")
      ->check(whole(0, 1'000'000'000))
      ->capture_default_str();
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
}

void add_explain(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("explain", "name the fault behind a failing case");
  command->add_option("case", p.explain.case_path, "case file")->required();
  command->add_option("--cases", p.explain.cases, "further cases that may be run to decide")
      ->check(whole(0, 1000))
      ->capture_default_str();
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
}

void add_profile(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("profile", "count what a case's launches do");
  command->add_option("case", p.profile.case_path, "case file")->required();
  command
      ->add_option("--lcov", p.profile.lcov_path,
                   "write which source lines of the kernels ran, as an lcov tracefile")
      ->check(named());
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
}

void add_fuzz(CLI::App& app, Parsed& p) {
  CLI::App* command =
      app.add_subcommand("fuzz", "a campaign of many processes; continues where it was stopped");
  command->add_option("--dir", p.fuzz.folder, "folder of the campaign")->required()->check(named());
  command->add_option("--jobs", p.fuzz.jobs, "worker processes")
      ->check(whole(1, 256))
      ->capture_default_str();
  command->add_option("--minutes", p.fuzz.minutes, "stop after this time")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--cases", p.fuzz.cases, "stop after this many cases of the campaign")
      ->check(whole(0, UINT64_MAX));
  command->add_option("--seed", p.fuzz.seed, "of the drawn cases; kept by the folder")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--worker", p.fuzz.worker)->group("");
  add_bench(*command, p.bench, p.device);
  add_json(*command, p.json_path);
  CLI::App* triage = app.add_subcommand("triage", "group findings; one line for each fault");
  triage->add_option("folder", p.triage.folder, "folder of cases, or of a campaign")->required();
  triage->add_option("--runs", p.triage.runs, "runs of each finding, for its rate")
      ->check(whole(1, 100))
      ->capture_default_str();
  add_bench(*triage, p.bench, p.device);
  add_json(*triage, p.json_path);
}

void add_exec(CLI::App& app, Parsed& p) {
  CLI::App* command =
      app.add_subcommand("exec", "run a CUDA program under all checks: kverify exec -- ./a.out 7");
  command->add_option("program", p.exec.command, "after --, with its arguments")->required();
  command->add_option("--checks", p.exec.checks, "memory, undefined, race, barrier, async, leak")
      ->check(named())
      ->capture_default_str();
  command->add_option("--seed", p.exec.seed, "of the schedule of blocks, warps and streams")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--sm", p.exec.model_sm, "simulated architecture")
      ->check(CLI::IsMember({80, 89, 90}))
      ->capture_default_str();
  command->add_option("--suppress", p.exec.suppressions_path, "file of 'kind file:line reason'")
      ->check(named());
  command->add_option("--profile", p.exec.profile_path, "write counters as JSON")->check(named());
  command->add_option("--lcov", p.exec.lcov_path, "write the lines that ran, for lcov")
      ->check(named());
  add_json(*command, p.json_path);
}

void add_trace_options(CLI::App& command, Parsed& p) {
  command.add_option("trace", p.trace.trace_path, "trace file (.csv or .jsonl)")->required();
  command.add_option("--requests", p.trace.requests, "take the first N requests")
      ->check(whole(1, uint64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--scale", p.trace.scale, "multiply every length by this")
      ->check(number(1e-6, 1))
      ->capture_default_str();
}

void add_engine_options(CLI::App& command, TraceOptions& o) {
  command
      .add_option("--level", o.level,
                  "kernel: attention calls; engine: an engine with its own cache, true lengths")
      ->check(CLI::IsMember({"kernel", "engine"}))
      ->capture_default_str();
  const auto count = [&](const char* name, uint32_t& value, uint64_t most, const char* what) {
    command.add_option(name, value, what)->check(whole(1, most))->capture_default_str();
  };
  count("--batch", o.batch_slots, 1024, "engine: requests that run at once");
  count("--chunk", o.chunk_tokens, 1u << 17, "engine: tokens of a prompt in one step");
  command
      .add_option("--page-slots", o.page_slots,
                  "engine: slots of a page, a power of two (default: 256 with block ids, else 16)")
      ->check(whole(1, 256));
  command
      .add_option("--pool-pages", o.pool_pages,
                  "engine: pages of the pool (default: the longest request in each batch slot)")
      ->check(whole(1, 1u << 20));
  command
      .add_option("--step-ms", o.step_ms,
                  "engine: duration of a step, for arrivals as recorded; 0: all are there at first")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command
      .add_option("--sample", o.sample_one_in,
                  "engine: judge the attention of one row of the steps in so many")
      ->check(whole(1, 1'000'000'000))
      ->capture_default_str();
  command
      .add_option("--completions", o.completions,
                  "engine: so many completions of the first prompt, forked and encoded again")
      ->check(whole(1, 256));
}

void add_trace(CLI::App& app, Parsed& p) {
  CLI::App* trace = app.add_subcommand("trace", "serving traces as cases");
  trace->require_subcommand(1);
  CLI::App* import = trace->add_subcommand("import", "turn a trace into a case file");
  add_trace_options(*import, p);
  import->add_option("--out", p.trace.case_path, "case file to write")->required();
  CLI::App* run = trace->add_subcommand("run", "replay a trace against a plugin and judge it");
  add_trace_options(*run, p);
  run->add_option("--out", p.trace.out, "folder for the case of a finding")->capture_default_str();
  add_engine_options(*run, p.trace);
  add_bench(*run, p.bench, p.device);
  add_json(*run, p.json_path);
}

void add_trace_serve(CLI::App& app, Parsed& p) {
  CLI::App* serve = app.get_subcommand("trace")->add_subcommand(
      "serve", "a trace through the production page manager: hits, pages, steps, waits");
  TraceServeOptions& o = p.serve;
  serve->add_option("trace", o.trace_path, "trace file (.csv or .jsonl)")->required();
  serve->add_option("--requests", o.requests, "take the first N requests (default: all)")
      ->check(whole(1, uint64_t{1} << 20));
  serve
      ->add_option("--page-slots", o.page_slots,
                   "slots of a page, a power of two (default: 512 with block ids, else 16)")
      ->check(whole(1, 1u << 20));
  serve
      ->add_option("--pages", o.pages,
                   "pools for the prefix-hit curve, comma-separated; 0: nothing is ever evicted")
      ->delimiter(',')
      ->check(whole(0, 1u << 24));
  serve->add_option("--slots", o.slots, "batch slots where batchings are compared")
      ->check(whole(1, 1024))
      ->capture_default_str();
  serve->add_option("--contexts", o.contexts, "context limits of the table; 0: none")
      ->delimiter(',')
      ->check(whole(0, 1u << 24));
  serve->add_option("--batches", o.batches, "batch slots of the table")
      ->delimiter(',')
      ->check(whole(1, 1024));
  serve->add_option("--concurrency", o.concurrency, "open requests, of the table; 0: all")
      ->delimiter(',')
      ->check(whole(0, 1u << 20));
  serve
      ->add_option("--step-ms", o.step_ms,
                   "durations of a step, of the table, for arrivals as recorded; 0: without them")
      ->delimiter(',')
      ->check(number(0, 1e6));
  serve->add_option("--svg", o.svg_path, "draw the pool over time")->check(named());
  serve->add_option("--token-bytes", o.token_bytes, "bytes of K and V of a token in all layers")
      ->check(whole(1, 1u << 30))
      ->capture_default_str();
  add_json(*serve, p.json_path);
}

void add_plan(CLI::App& app, Parsed& p) {
  CLI::App* command = app.add_subcommand("plan", "bytes of a model's K/V cache, and what fits");
  command->add_option("config", p.plan.config_path, "the model's config.json")->required();
  command->add_option("--context", p.plan.context, "tokens of a request (default: the model's)")
      ->check(whole(1, 1u << 30));
  command->add_option("--batch", p.plan.batch, "requests at once")
      ->check(whole(1, 1u << 20))
      ->capture_default_str();
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::kF32},   {"f16", DType::kF16},   {"bf16", DType::kBf16}, {"fp8", DType::kE4m3},
      {"e4m3", DType::kE4m3}, {"e5m2", DType::kE5m2}, {"i8", DType::kI8}};
  command
      ->add_option_function<std::string>(
          "--kv-dtype",
          [&p, dtypes](const std::string& name) { p.plan.kv_dtype = dtypes.at(name); },
          "of the cache (default: the model's)")
      ->check(CLI::IsMember(dtypes));
  command->add_option("--ranks", p.plan.ranks, "tensor-parallel ranks")
      ->check(whole(1, kRanksMax))
      ->capture_default_str();
  command->add_option("--page-slots", p.plan.page_slots, "tokens of a page")
      ->check(whole(1, limits::kPageSlotsMax))
      ->capture_default_str();
  command->add_option("--memory-gib", p.plan.memory_gib, "memory of one rank's device")
      ->check(number(0, 1e6));
  command->add_option("--weights-gib", p.plan.weights_gib, "of which its weights take")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--trace", p.plan.trace_path, "whose requests to admit (.csv or .jsonl)")
      ->check(named());
  command->add_option("--requests", p.plan.requests, "take the first N of the trace")
      ->check(whole(1, uint64_t{1} << 20));
  command->add_flag("--advise", p.plan.advise, "say what to choose, and why");
  add_json(*command, p.json_path);
}

void add_others(CLI::App& app, Parsed& p) {
  CLI::App* doctor = app.add_subcommand("doctor", "say what this machine has and what is missing");
  add_bench(*doctor, p.bench, p.device);
  CLI::App* kernels = app.add_subcommand("kernels", "say which kernel a plugin runs for what");
  add_bench(*kernels, p.bench, p.device);
  CLI::App* worker = app.add_subcommand("worker", "internal: the process that runs foreign code");
  worker->group("");
  worker->add_option("--device", p.device)->required()->check(CLI::IsMember({"cpu", "cuda"}));
  worker->add_option("--plugin", p.worker.plugin_path)->required();
  worker->add_option("--profile", p.worker.profile_path);
  worker->add_option("--lcov", p.worker.lcov_path);
}

// Results never replace what they were made from.
Result<void> keep_input(const std::string& input, const std::string& output) {
  std::error_code missing;
  if (input.empty() || output.empty()) return {};
  if (!std::filesystem::equivalent(input, output, missing)) return {};
  return bad_input(output + ": expected another file than the input, got the input itself");
}

/// What every command shares.
void share_options(Parsed& p) {
  p.bench.device = p.device == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
  p.check.bench = p.replay.bench = p.trace.bench = p.minimize.bench = p.bench;
  p.explain.bench = p.fuzz.bench = p.triage.bench = p.report.bench = p.profile.bench = p.bench;
  p.mutate.bench = p.bench;
  for (auto* path :
       {&p.check.json_path, &p.replay.json_path, &p.trace.json_path, &p.serve.json_path,
        &p.plan.json_path, &p.minimize.json_path, &p.explain.json_path, &p.fuzz.json_path,
        &p.triage.json_path, &p.profile.json_path, &p.exec.json_path, &p.mutants.json_path,
        &p.mutate.json_path}) {
    *path = p.json_path;
  }
}

Result<void> keep_inputs(const Parsed& p) {
  for (const std::string& input :
       {p.replay.case_path, p.profile.case_path, p.trace.trace_path, p.serve.trace_path,
        p.plan.config_path, p.plan.trace_path, p.minimize.case_path, p.explain.case_path}) {
    KV_RETURN_IF_ERROR(keep_input(input, p.json_path.value_or("")));
    KV_RETURN_IF_ERROR(keep_input(input, p.trace.case_path));
    KV_RETURN_IF_ERROR(keep_input(input, p.minimize.out));
    KV_RETURN_IF_ERROR(keep_input(input, p.profile.lcov_path));
  }
  KV_RETURN_IF_ERROR(keep_input(p.serve.trace_path, p.serve.svg_path));
  KV_RETURN_IF_ERROR(keep_input(p.show.case_path, p.show.reach_path));
  return keep_input(p.report.path, p.report.out);
}

Result<ExitCode> dispatch(const CLI::App& app, Parsed& p) {
  share_options(p);
  if (app.got_subcommand("worker")) {
    p.worker.device = p.bench.device;
    p.worker.engine_server = serve_engine;
    return static_cast<ExitCode>(run_worker(p.worker));
  }
  catch_interrupts();
  KV_RETURN_IF_ERROR(keep_inputs(p));
  if (app.got_subcommand("mutants")) return mutants(p.mutants);
  if (app.got_subcommand("mutate")) return mutate(p.mutate);
  if (app.got_subcommand("mutate-shard")) return mutate_shard(p.mutate);
  if (app.got_subcommand("check")) {
    return p.check.level == "engine" ? check_histories(p.check) : check(p.check);
  }
  if (app.got_subcommand("replay")) return replay(p.replay);
  if (app.got_subcommand("report")) return report(p.report);
  if (app.got_subcommand("minimize")) return minimize(p.minimize);
  if (app.got_subcommand("explain")) return explain(p.explain);
  if (app.got_subcommand("fuzz")) return p.fuzz.worker ? fuzz_worker(p.fuzz) : fuzz(p.fuzz);
  if (app.got_subcommand("triage")) return triage(p.triage);
  if (app.got_subcommand("show")) return show(p.show);
  if (app.got_subcommand("exec")) return exec(p.exec);
  if (app.got_subcommand("profile")) return profile(p.profile);
  if (app.got_subcommand("plan")) return plan(p.plan);
  if (app.got_subcommand("doctor")) return doctor(p.bench);
  if (app.got_subcommand("kernels")) return kernels(p.bench);
  if (app.get_subcommand("trace")->got_subcommand("import")) return trace_import(p.trace);
  if (app.get_subcommand("trace")->got_subcommand("serve")) return trace_serve(p.serve);
  return trace_run(p.trace);
}

int run(int argc, char** argv) {
  CLI::App app(
      "kverify finds wrong results in CUDA attention and KV-cache code, proves that they "
      "are wrong, and names why. It needs no GPU.");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("kverify ") + kVersion);
  app.require_subcommand(1);
  Parsed parsed;
  add_check(app, parsed);
  add_mutants(app, parsed);
  add_mutate(app, parsed);
  add_replay(app, parsed);
  add_minimize(app, parsed);
  add_explain(app, parsed);
  add_fuzz(app, parsed);
  add_profile(app, parsed);
  add_exec(app, parsed);
  add_trace(app, parsed);
  add_trace_serve(app, parsed);
  add_plan(app, parsed);
  add_others(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    return static_cast<int>(asked ? ExitCode::kPass : ExitCode::kBadInput);
  }
  const Result<ExitCode> code = dispatch(app, parsed);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "kverify: error: standard output could not be written in full\n");
    return static_cast<int>(ExitCode::kEnvironment);
  }
  if (code.ok()) return static_cast<int>(*code);
  if (interrupted()) return kInterruptedStatus;
  std::fprintf(stderr, "kverify: error: %s\n", code.error().message.c_str());
  return static_cast<int>(exit_code_of(code.error().kind));
}

}  // namespace

}  // namespace kv::cli

int main(int argc, char** argv) { return kv::cli::run(argc, argv); }
