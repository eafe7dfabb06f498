// kverify fuzz
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_fuzz(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<FuzzOptions>(
      {app, "fuzz", "a campaign of many processes; continues where it was stopped"}, chosen,
      [](const FuzzOptions& o) { return o.worker ? fuzz_worker(o) : fuzz(o); });
  command->add_option("--dir", o->folder, "folder of the campaign")->required()->check(named());
  command->add_option("--jobs", o->jobs, "worker processes")
      ->check(whole(1, 256))
      ->capture_default_str();
  command->add_option("--minutes", o->minutes, "stop after this time")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--cases", o->cases, "stop after this many cases of the campaign")
      ->check(whole(0, UINT64_MAX));
  command->add_option("--seed", o->seed, "of the drawn cases; kept by the folder")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command
      ->add_option("--level", o->level,
                   "kernel: attention calls; engine: histories of an engine with its own cache")
      ->check(CLI::IsMember({"kernel", "engine"}))
      ->capture_default_str();
  command->add_option("--worker", o->worker)->group("");
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
