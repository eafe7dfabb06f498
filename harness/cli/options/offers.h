// Purpose: every subcommand of kverify, a line each; cli.cpp takes them all.
// Contract: each adds its subcommand to the parser (options/subcommand.h).
#pragma once

#include "harness/cli/options/subcommand.h"

namespace kv::cli {

void offer_bisect(CLI::App& app, Chosen& chosen);
void offer_check(CLI::App& app, Chosen& chosen);
void offer_diff(CLI::App& app, Chosen& chosen);
void offer_doctor(CLI::App& app, Chosen& chosen);
void offer_exec(CLI::App& app, Chosen& chosen);
void offer_explain(CLI::App& app, Chosen& chosen);
void offer_fuzz(CLI::App& app, Chosen& chosen);
void offer_import(CLI::App& app, Chosen& chosen);
void offer_kernels(CLI::App& app, Chosen& chosen);
void offer_minimize(CLI::App& app, Chosen& chosen);
void offer_mutants(CLI::App& app, Chosen& chosen);
void offer_mutants_attribute(CLI::App& app, Chosen& chosen);
void offer_mutate(CLI::App& app, Chosen& chosen);
void offer_mutate_shard(CLI::App& app, Chosen& chosen);
void offer_plan(CLI::App& app, Chosen& chosen);
void offer_profile(CLI::App& app, Chosen& chosen);
void offer_replay(CLI::App& app, Chosen& chosen);
void offer_report(CLI::App& app, Chosen& chosen);
void offer_show(CLI::App& app, Chosen& chosen);
void offer_trace(CLI::App& app, Chosen& chosen);
void offer_triage(CLI::App& app, Chosen& chosen);
void offer_worker(CLI::App& app, Chosen& chosen);

}  // namespace kv::cli
