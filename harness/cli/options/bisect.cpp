// kverify bisect
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_bisect(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<BisectOptions>(
      {app, "bisect", "find the commit of an implementation with which a case began to fail"},
      chosen, bisect);
  command->footer(R"(
Works in a working tree of its own in TMPDIR; the repository's own tree is not touched. Commits that
do not build, or that fail in another way, are skipped. 0: the first bad commit is named; 5: it is
one of several that could not be tried; 6: --commits were not enough.
Example: kverify bisect v1.2 main bad.json --repo ../impl --build 'make p.so' --plugin p.so)");
  command->add_option("good", o->good, "commit in which the case passes")
      ->required()
      ->check(named());
  command->add_option("bad", o->bad, "commit in which it fails")->required()->check(named());
  command->add_option("case", o->case_path, "case file")->required();
  command->add_option("--build", o->build, "shell command that builds a commit, in its tree")
      ->required()
      ->check(named());
  command->add_option("--plugin", o->plugin, "file that it builds, within that tree")
      ->required()
      ->check(named());
  command->add_option("--repo", o->repository, "folder of the repository")
      ->check(named())
      ->capture_default_str();
  command->add_option("--keep", o->keep, "file of results: what is in it is not built again")
      ->check(named());
  command->add_option("--build-seconds", o->build_seconds, "most for one build")
      ->check(number(0.1, 1e6))
      ->capture_default_str();
  command->add_option("--commits", o->commits_max, "try at most so many")
      ->check(whole(3, 1'000'000))
      ->capture_default_str();
  add_running(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
