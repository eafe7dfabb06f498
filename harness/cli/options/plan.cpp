// kverify plan
#include <map>

#include "harness/case/limits.h"
#include "harness/cli/options/offers.h"
#include "harness/plan/cache_size.h"

namespace kv::cli {

void offer_plan(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<PlanOptions>(
      {app, "plan", "bytes of a model's K/V cache, and what fits"}, chosen,
      [](const PlanOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.config_path, o.json_path.value_or("")));
        KV_RETURN_IF_ERROR(keep_apart(o.trace_path, o.json_path.value_or("")));
        return plan(o);
      });
  end_at_once(*command, chosen);
  command->add_option("config", o->config_path, "the model's config.json")->required();
  command->add_option("--context", o->context, "tokens of a request (default: the model's)")
      ->check(whole(1, 1u << 30));
  command
      ->add_option("--batch", o->batch,
                   "requests at once (default: 1; of a trace, as many as the memory holds)")
      ->check(whole(1, 1u << 20));
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::kF32},   {"f16", DType::kF16},   {"bf16", DType::kBf16}, {"fp8", DType::kE4m3},
      {"e4m3", DType::kE4m3}, {"e5m2", DType::kE5m2}, {"i8", DType::kI8}};
  command
      ->add_option_function<std::string>(
          "--kv-dtype",
          [options = o, dtypes](const std::string& name) { options->kv_dtype = dtypes.at(name); },
          "of the cache (default: the model's)")
      ->check(CLI::IsMember(dtypes));
  command->add_option("--ranks", o->ranks, "tensor-parallel ranks")
      ->check(whole(1, kRanksMax))
      ->capture_default_str();
  command->add_option("--page-slots", o->page_slots, "tokens of a page")
      ->check(whole(1, limits::kPageSlotsMax))
      ->capture_default_str();
  command->add_option("--memory-gib", o->memory_gib, "memory of one rank's device")
      ->check(number(0, 1e6));
  command->add_option("--weights-gib", o->weights_gib, "of which its weights take")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--trace", o->trace_path, "whose requests to admit (.csv or .jsonl)")
      ->check(named());
  command->add_option("--requests", o->requests, "take the first N of the trace")
      ->check(whole(1, uint64_t{1} << 20));
  command->add_flag("--advise", o->advise, "say what to choose, and why");
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
