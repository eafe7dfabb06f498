// What kverify itself costs for one case in the worker: everything but the plugin, which does
// nothing here. Usage: run_bench --benchmark_filter=...
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "harness/case/data.h"
#include "harness/case/json.h"
#include "harness/case/timeline.h"
#include "harness/run/kernel_run.h"
#include "harness/run/step_data.h"
#include "harness/run/wire.h"

namespace kv {
namespace {

/// Eight query rows over 64 slots, four heads of 64.
Case small_case() {
  Case c;
  c.shape.query_heads = c.shape.kv_heads = 4;
  c.pool.page_count = 6;
  const RequestId r(0);
  c.ops = {op::Admit{.request = r, .prompt_tokens = 64},
           op::Step{.rows = {{.request = r, .append = 64, .queries = 8}}}};
  return c;
}

struct Loaded {
  CudaRuntime runtime;
  LoadedPlugin plugin;
};

const Loaded& loaded() {
  static const Loaded loaded = [] {
    setenv("KVERIFY_SIMT", KV_BUILD_DIR "/lib/simt/libcudart.so.13", 0);
    setenv("KVERIFY_TEST_FAULT", "idle", 1);
    Loaded l;
    l.runtime = load_runtime(DeviceKind::kCpu).value();
    l.plugin =
        load_plugin(KV_BUILD_DIR "/lib/testdata/libmisbehaving_plugin.so", l.runtime).value();
    return l;
  }();
  return loaded;
}

void whole_case(benchmark::State& state) {
  const Case c = small_case();
  StatusPage status;
  const Bench bench{loaded().plugin, loaded().runtime, status};
  for (auto _ : state) {
    const RunEnd end = run_kernel_case(c, bench, [](const OpObservation&) {});
    if (end.outcome != RunOutcome::kCompleted) state.SkipWithError(end.message.c_str());
  }
}
BENCHMARK(whole_case);

void inputs_of_the_case(benchmark::State& state) {
  const Case c = small_case();
  std::vector<std::byte> bytes;
  for (auto _ : state) {
    Timeline timeline = Timeline::create(c).value();
    timeline.apply(0);
    const PlannedStep step = timeline.apply(1);
    for (const TensorRole role : {TensorRole::kKey, TensorRole::kValue, TensorRole::kQuery})
      fill_step_tensor(c, timeline, step, {0, role}, bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
}
BENCHMARK(inputs_of_the_case);

void json_of_the_case(benchmark::State& state) {
  const Case c = small_case();
  for (auto _ : state) benchmark::DoNotOptimize(parse_case(case_to_json(c), "bench").ok());
}
BENCHMARK(json_of_the_case);

void observation_over_the_wire(benchmark::State& state) {
  const Case c = small_case();
  StatusPage status;
  OpObservation seen;
  run_kernel_case(c, {loaded().plugin, loaded().runtime, status},
                  [&](const OpObservation& o) { seen = o; });
  for (auto _ : state)
    benchmark::DoNotOptimize(decode_operation(encode_operation(1, seen)).has_value());
}
BENCHMARK(observation_over_the_wire);

}  // namespace
}  // namespace kv

BENCHMARK_MAIN();
