// kverify trace: import, run, serve
#include "harness/cli/options/offers.h"

namespace kv::cli {

namespace {

constexpr const char* kEngineOptions = "With --level engine";

void add_trace_options(CLI::App& command, TraceOptions& o, const char* requests_text) {
  command.add_option("trace", o.trace_path, "trace file (.csv or .jsonl)")->required();
  command.add_option("--requests", o.requests, requests_text)->check(whole(1, uint64_t{1} << 20));
  command.add_option("--scale", o.scale, "multiply every length by this")
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
    command.add_option(name, value, what)
        ->check(whole(1, most))
        ->capture_default_str()
        ->group(kEngineOptions);
  };
  count("--batch", o.batch_slots, 1024, "requests that run at once");
  count("--chunk", o.chunk_tokens, 1u << 17, "tokens of a prompt in one step");
  command
      .add_option("--page-slots", o.page_slots,
                  "slots of a page, a power of two (default: 256 with block ids, else 16)")
      ->check(whole(1, 256))
      ->group(kEngineOptions);
  command
      .add_option("--pool-pages", o.pool_pages,
                  "pages of the pool (default: for twice the batch of average requests, and "
                  "the longest one)")
      ->check(whole(1, 1u << 20))
      ->group(kEngineOptions);
  command
      .add_option("--step-ms", o.step_ms,
                  "duration of a step, for arrivals as recorded; 0: all are there at first")
      ->check(number(0, 1e6))
      ->capture_default_str()
      ->group(kEngineOptions);
  command
      .add_option("--sample", o.sample_one_in,
                  "judge the attention of one row of the steps in so many")
      ->check(whole(1, 1'000'000'000))
      ->capture_default_str()
      ->group(kEngineOptions);
  command
      .add_option("--completions", o.completions,
                  "so many completions of the first prompt, forked and encoded again")
      ->check(whole(1, 256))
      ->group(kEngineOptions);
}

Result<void> check_level(const CLI::App& command, const std::string& level) {
  for (const CLI::Option* option : command.get_options()) {
    if (level == "engine" || option->get_group() != kEngineOptions || option->empty()) continue;
    return bad_input(option->get_name() + ": expected --level engine, got " + level);
  }
  return {};
}

void offer_trace_import(CLI::App& trace, Chosen& chosen) {
  auto [command, o] =
      subcommand<TraceOptions>({trace, "import", "turn a trace into a case file"}, chosen,
                               [](const TraceOptions& o) -> Result<ExitCode> {
                                 KV_RETURN_IF_ERROR(keep_apart(o.trace_path, o.case_path));
                                 return trace_import(o);
                               });
  add_trace_options(*command, *o, "take the first N requests (default: 8)");
  end_at_once(*command, chosen);
  command->add_option("--out", o->case_path, "case file to write")->required();
}

void offer_run(CLI::App& trace, Chosen& chosen) {
  auto [command, o] = subcommand<TraceOptions>(
      {trace, "run", "replay a trace against a plugin and judge it"}, chosen,
      [&trace](const TraceOptions& o) -> Result<ExitCode> {
        const CLI::App& run = *trace.get_subcommand("run");
        KV_RETURN_IF_ERROR(check_level(run, o.level));
        KV_RETURN_IF_ERROR(keep_apart(o.trace_path, o.json_path.value_or("")));
        TraceOptions all = o;
        const bool is_limited = o.level == "kernel" || !run.get_option("--requests")->empty();
        if (!is_limited) all.requests = UINT64_MAX;
        return trace_run(all);
      });
  add_trace_options(*command, *o,
                    "take the first N requests (default: 8; all with --level engine)");
  command->add_option("--out", o->out, "folder for the case of a finding")->capture_default_str();
  add_engine_options(*command, *o);
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

void offer_serve(CLI::App& trace, Chosen& chosen) {
  auto [command, o] = subcommand<TraceServeOptions>(
      {trace, "serve", "a trace through the production page manager: hits, pages, steps, waits"},
      chosen, [](const TraceServeOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.trace_path, o.json_path.value_or("")));
        KV_RETURN_IF_ERROR(keep_apart(o.trace_path, o.svg_path));
        return trace_serve(o);
      });
  end_at_once(*command, chosen);
  command->add_option("trace", o->trace_path, "trace file (.csv or .jsonl)")->required();
  command->add_option("--requests", o->requests, "take the first N requests (default: all)")
      ->check(whole(1, uint64_t{1} << 20));
  command
      ->add_option("--page-slots", o->page_slots,
                   "slots of a page, a power of two (default: 512 with block ids, else 16)")
      ->check(whole(1, 1u << 20));
  command
      ->add_option("--pages", o->pages,
                   "pools for the prefix-hit curve, comma-separated; 0: nothing is ever evicted")
      ->delimiter(',')
      ->check(whole(0, 1u << 24));
  command->add_option("--slots", o->slots, "batch slots where batchings are compared")
      ->check(whole(1, 1024))
      ->capture_default_str();
  command->add_option("--contexts", o->contexts, "context limits of the table; 0: none")
      ->delimiter(',')
      ->check(whole(0, 1u << 24));
  command->add_option("--batches", o->batches, "batch slots of the table")
      ->delimiter(',')
      ->check(whole(1, 1024));
  command->add_option("--concurrency", o->concurrency, "open requests, of the table; 0: all")
      ->delimiter(',')
      ->check(whole(0, 1u << 20));
  command
      ->add_option("--step-ms", o->step_ms,
                   "durations of a step, of the table, for arrivals as recorded; 0: without them")
      ->delimiter(',')
      ->check(number(0, 1e6));
  command->add_option("--svg", o->svg_path, "draw the pool over time")->check(named());
  command->add_option("--token-bytes", o->token_bytes, "bytes of K and V of a token in all layers")
      ->check(whole(1, 1u << 30))
      ->capture_default_str();
  add_json(*command, o->json_path);
}

}  // namespace

void offer_trace(CLI::App& app, Chosen& chosen) {
  CLI::App* trace = app.add_subcommand("trace", "serving traces as cases");
  trace->require_subcommand(1);
  offer_trace_import(*trace, chosen);
  offer_run(*trace, chosen);
  offer_serve(*trace, chosen);
}

}  // namespace kv::cli
