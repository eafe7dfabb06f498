// kverify diff
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_diff(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<DiffOptions>(
      {app, "diff", "the same cases on two builds: which bits changed, how errors moved"}, chosen,
      diff);
  command->footer(R"(
0: equal bits, or changed ones within the limits. 1: the new build fails where the old one did not,
or a quantile of |error| / bound (p50, p90, p99, p99.9, largest) is more than --factor times what it
was and above --floor, or, with --exact, a bit changed.)");
  command->add_option("old", o->before_path, "plugin as it was")->required()->check(named());
  command->add_option("new", o->after_path, "plugin as it is now")->required()->check(named());
  command->add_option("--cases", o->cases, "draw N cases, after those of the corpus")
      ->check(whole(0, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of the drawn cases")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--corpus", o->corpus, "folder with seeds/ and regression/, run first")
      ->check(named())
      ->capture_default_str();
  command->add_option("--factor", o->limits.factor, "a quantile may grow by this")
      ->check(number(1, 1e6))
      ->capture_default_str();
  command->add_option("--floor", o->limits.floor, "share of the bound below which nothing matters")
      ->check(number(0, 1))
      ->capture_default_str();
  command->add_flag("--exact", o->exact, "any changed bit is a failure");
  add_running(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
