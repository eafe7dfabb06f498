// kverify check
#include "harness/cli/options/offers.h"

namespace kv::cli {

namespace {

void add_ci_output(CLI::App& command, CheckOptions& o) {
  command.add_option("--junit", o.junit_path, "write JUnit XML")->check(named());
  command.add_option("--sarif", o.sarif_path, "write SARIF 2.1.0")->check(named());
  command.add_option("--html", o.html_path, "write an HTML page with pictures")->check(named());
  command.add_flag("--annotations", o.annotations, "print GitHub annotations");
  command
      .add_option("--baseline", o.baseline_path,
                  "file of known faults, a fingerprint a line; they do not fail the run")
      ->check(named());
  command
      .add_option("--write-baseline", o.write_baseline_path,
                  "write the faults of this run as a baseline")
      ->check(named());
}

}  // namespace

void offer_check(CLI::App& app, Chosen& chosen) {
  auto [command, o] =
      subcommand<CheckOptions>({app, "check", "draw cases, run and judge them"}, chosen, check);
  command->add_option("--cases", o->cases, "cases to draw (default: 200)")
      ->check(whole(0, 1'000'000'000));
  command->add_option("--minutes", o->minutes, "stop drawing after this time")
      ->check(number(0, 1e6));
  command
      ->add_option("--processor-seconds", o->processor_seconds,
                   "stop drawing after so much processor time")
      ->check(number(0, 1e8));
  command->add_option("--seed", o->seed, "of the drawn cases")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--corpus", o->corpus, "folder with seeds/ and regression/")
      ->check(named())
      ->capture_default_str();
  command->add_option("--out", o->out, "folder for the cases of findings")
      ->check(named())
      ->capture_default_str();
  command->add_flag(
      "--exhaustive", o->exhaustive,
      "all small cases: block tables, masks, lengths, paddings; no corpus, no drawn ones");
  command
      ->add_option("--shard", o->shard,
                   "i/n: of the small cases the i-th share of n, to go on with")
      ->capture_default_str();
  command->add_flag("--keep-going", o->keep_going, "do not stop after 10 distinct or 50 findings");
  command
      ->add_option("--minimize-attempts", o->minimize_attempts,
                   "candidates for the smaller case of each distinct fault; 0: none")
      ->check(whole(0, 1'000'000))
      ->capture_default_str();
  command->add_flag("--first", o->first, "stop at the first finding");
  add_ci_output(*command, *o);
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
  command
      ->add_option("--level", o->level,
                   "kernel: attention calls; engine: histories of an engine with its own cache")
      ->check(CLI::IsMember({"kernel", "engine"}))
      ->capture_default_str();
}

}  // namespace kv::cli
