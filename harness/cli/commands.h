// Purpose: the subcommands of kverify, as functions of plain options.
// Contract: each prints what a person wants to know to standard output and progress to standard
// error, and returns the exit code (report/exit_code.h). An Error is printed by the caller.
// Example: Result<ExitCode> code = check({.cases = 50, .bench = {.plugin_path = path}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/certify/bench.h"
#include "harness/core/formats.h"
#include "harness/core/result.h"
#include "harness/diff/shift.h"
#include "harness/dump/settings.h"
#include "harness/report/exit_code.h"

namespace kv::cli {

struct CheckOptions {
  std::optional<uint64_t> cases;  // drawn ones; default 200, unlimited with minutes
  std::optional<double> minutes;
  std::optional<double> processor_seconds;  // likewise, of all processes
  uint64_t seed = 0;
  BenchOptions bench;
  std::optional<std::string> json_path;  // "": standard output
  std::string corpus = "corpus";  // seeds/ and regression/ are replayed first, where they exist
  std::string out = "corpus/crashing";
  bool keep_going = false;
  bool first = false;            // stop at the first finding
  std::string level = "kernel";  // or "engine": histories
  bool exhaustive = false;       // all small cases instead of corpus and drawn ones
  std::string shard = "1/1";     // of them: the i-th of n shares
  std::string junit_path, sarif_path, html_path;  // "": none
  bool annotations = false;                       // GitHub's, to standard output
  std::string baseline_path;                      // faults that are known and do not fail the run
  std::string write_baseline_path;                // faults of this run, for the next
  uint64_t minimize_attempts = 400;  // for the smaller case offered with each distinct fault
};
Result<ExitCode> check(const CheckOptions& options);

struct ReplayOptions {
  std::string case_path;
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> replay(const ReplayOptions& options);

struct ReportOptions {
  std::string path;  // a case, or a folder of them
  std::string out = "report.html";
  BenchOptions bench;
};
Result<ExitCode> report(const ReportOptions& options);

struct MinimizeOptions {
  std::string case_path;
  std::string out;  // "": beside the case, CASE.min.json
  double seconds = 60;
  uint64_t attempts = 5000;
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> minimize(const MinimizeOptions& options);

struct ExplainOptions {
  std::string case_path;
  uint32_t cases = 16;  // further ones, to tell hypotheses apart
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> explain(const ExplainOptions& options);

struct FuzzOptions {
  uint32_t jobs = 1;
  double minutes = 10;
  std::optional<uint64_t> cases;  // stop after so many
  std::string folder;
  uint64_t seed = 0;
  std::string level = "kernel";    // or "engine": histories; kept by the folder
  std::optional<uint32_t> worker;  // internal: be this worker of the campaign
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> fuzz(const FuzzOptions& options);
Result<ExitCode> fuzz_worker(const FuzzOptions& options);

struct TriageOptions {
  std::string folder;
  std::string sql;    // a query of the campaign's ledger; then nothing is run
  uint32_t runs = 3;  // of each finding
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> triage(const TriageOptions& options);

struct ShowOptions {
  std::string case_path;
  bool coverage = false;   // which faults the case would expose, whatever the kernel
  std::string reach_path;  // where the case is written with rows and data that expose them all
};
Result<ExitCode> show(const ShowOptions& options);

struct ImportOptions {
  std::string dump_path;  // .safetensors or .npz
  std::string case_path;
  std::string prefix;  // of the tensors' names
  DumpSettings settings;
  std::optional<std::string> json_path;
};
Result<ExitCode> import(const ImportOptions& options);

/// Two builds of one implementation.
struct DiffOptions {
  std::string before_path, after_path;  // plugins
  uint64_t cases = 200;                 // drawn ones
  uint64_t seed = 0;
  std::string corpus = "corpus";
  ShiftLimits limits;
  bool exact = false;  // any changed bit is a failure
  BenchOptions bench;  // its plugin_path is not used
  std::optional<std::string> json_path;
};
Result<ExitCode> diff(const DiffOptions& options);

struct BisectOptions {
  std::string good, bad;  // commits of the repository
  std::string case_path;
  std::string build;             // a command of the shell, run in a working tree of a commit
  std::string plugin;            // what it builds, relative to that tree
  std::string repository = ".";  // a folder in it
  std::string keep;              // file of results, that the next run goes on from; "": none
  double build_seconds = 600;    // most for one build
  uint64_t commits_max = 64;     // built and tried, at most
  BenchOptions bench;            // its plugin_path is not used
  std::optional<std::string> json_path;
};
Result<ExitCode> bisect(const BisectOptions& options);

struct TraceOptions {
  std::string trace_path;
  uint64_t requests = 8;
  double scale = 1;
  std::string case_path;                // that `import` writes
  std::string out = "corpus/crashing";  // for the case of a finding of `run`
  BenchOptions bench;                   // of `trace run`
  std::optional<std::string> json_path;
  // of `trace run` on an engine that owns its cache
  std::string level = "kernel";  // or "engine"
  uint32_t batch_slots = 32, chunk_tokens = 512;
  std::optional<uint32_t> page_slots;  // 256 where the trace has block ids, else 16
  uint64_t pool_pages = 0;             // 0: see EngineReplayOptions
  double step_ms = 0;                  // 0: arrival times are not looked at
  uint64_t sample_one_in = 1000;       // rows of steps whose attention is judged
  uint32_t completions = 0;            // of the first prompt: forked against encoded again
};
Result<ExitCode> trace_import(const TraceOptions& options);
Result<ExitCode> trace_run(const TraceOptions& options);

struct TraceServeOptions {
  std::string trace_path;
  std::optional<uint64_t> requests;      // from its beginning; all if not said
  std::optional<uint64_t> page_slots;    // 512 where the trace has block ids, else 16
  std::vector<uint64_t> pages;           // pools for the prefix-hit curve; 0: unbounded
  uint32_t slots = 8;                    // batch slots of the comparison of batchings
  std::vector<uint64_t> contexts = {0};  // 0: no limit
  std::vector<uint64_t> batches = {8, 32};
  std::vector<uint64_t> concurrency = {0};  // open requests; 0: all are there at the start
  /// Durations of a step in milliseconds, of the table: requests come when they were recorded. 0:
  /// all are there at the start, or come as others are completed.
  std::vector<double> step_ms = {0, 25};
  std::string svg_path;            // of the pool over time, by the last of step_ms; "": none
  uint64_t token_bytes = 131'072;  // K and V: 32 layers of 8 heads of 128, two bytes each
  std::optional<std::string> json_path;
};
Result<ExitCode> trace_serve(const TraceServeOptions& options);

struct PlanOptions {
  std::string config_path;          // of a model: config.json
  std::optional<uint64_t> context;  // tokens of a request; the model's limit if not said
  std::optional<uint64_t> batch;    // 1 if not said; of a trace, as many as the memory holds
  std::optional<DType> kv_dtype;    // the model's if not said
  uint32_t ranks = 1;
  uint32_t page_slots = 16;
  std::optional<double> memory_gib;  // of one rank
  double weights_gib = 0;            // of them taken by weights
  std::string trace_path;            // "": none
  std::optional<uint64_t> requests;  // of the trace, from its beginning
  bool advise = false;
  std::optional<std::string> json_path;
};
Result<ExitCode> plan(const PlanOptions& options);

struct MutantsOptions {
  std::string patches = "corpus/mutants";
  std::string plugins;  // folder of the built mutants; "": build them beside this program first
  std::string corpus = "corpus";
  std::vector<std::string> only;  // parts of the names of those that run; none: all
  uint64_t seed = 1;
  uint32_t seeds = 1;     // for each, ascending from `seed`
  uint64_t cases = 3000;  // most that one may cost
  double seconds = 120;   // likewise, of processor time
  std::string results;    // file that results are kept in, and continued from; "": none
  std::string table;      // corpus/mutants/killed.json, brought up to date; "": none
  std::string matrix;     // file for the kill matrix, whose campaigns go on; "": none
  uint32_t jobs = 2;
  std::optional<std::string> json_path;
};
/// Passes when every planted bug is found with every seed, and no equivalent one is.
Result<ExitCode> mutants(const MutantsOptions& options);

struct MutateOptions {
  std::string kernel = "attend_";
  uint64_t mutations = 2000;
  uint32_t cases = 60;        // that the mutants are chosen by
  uint32_t reach_cases = 40;  // that execute the instruction of each, as far as draws have them
  uint64_t seed = 1;
  double seconds = 10;  // most for each mutant, of processor time
  uint32_t jobs = 2;
  double score_min = 0;  // a lower score is a failure
  std::string judgements;
  std::string again;   // what an earlier run wrote: its infected survivors alone are tried; "": all
  std::string folder;  // results are kept here, and continued from; "": none are kept
  BenchOptions bench;
  std::optional<std::string> json_path;
  // of one shard, internal
  uint64_t shard = 0, shards = 1;
};
Result<ExitCode> mutate(const MutateOptions& options);
Result<ExitCode> mutate_shard(const MutateOptions& options);

struct ProfileOptions {
  std::string case_path;
  BenchOptions bench;
  std::string lcov_path;                 // "": none
  std::optional<std::string> json_path;  // "": standard output
};
/// Counts what a case's launches do; judges nothing.
Result<ExitCode> profile(const ProfileOptions& options);

struct ExecOptions {
  std::vector<std::string> command;  // the program and its arguments
  std::string checks = "all";        // as KV_SIMT_CHECKS
  uint64_t seed = 0;                 // of the schedule
  uint32_t model_sm = 80;
  std::string suppressions_path;         // "": none
  std::string profile_path, lcov_path;   // "": none
  uint64_t time_limit_s = 600;           // 0: none
  std::optional<std::string> json_path;  // "": standard output
};
/// Runs a CUDA program on the CPU device. Without findings the code is the program's own status;
/// the time limit's where a kernel, or the program, had to be stopped.
Result<ExitCode> exec(const ExecOptions& options);

Result<ExitCode> doctor(const BenchOptions& bench);

/// Which kernel variant the plugin plans for which batch, and what it offers.
Result<ExitCode> kernels(const BenchOptions& bench);

}  // namespace kv::cli
