// How fast the tiers are. Figures are for people: nothing compares them.
//   build/bin/reference_bench
#include <benchmark/benchmark.h>

#include "reference/attention.h"
#include "reference/decide.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

// Time for each (query, key, dimension), O, LSE and the lower bound included.
void run_estimator(benchmark::State& state, const BlockOps& ops) {
  const uint32_t rows = static_cast<uint32_t>(state.range(0));
  const uint32_t slots = static_cast<uint32_t>(state.range(1));
  const uint32_t dim = static_cast<uint32_t>(state.range(2));
  TestHead head({.rows = rows, .slots = slots, .dim_k = dim, .dim_v = dim});
  const HeadBlock& block = head.block();
  const Profile profile = resolve_profile({});
  HeadEstimator estimator(ops);
  for (auto _ : state) benchmark::DoNotOptimize(estimator.run(block, profile).rows.data());
  const double work = double(rows) * slots * dim * double(state.iterations());
  state.counters["per_qkd"] =
      benchmark::Counter(work, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_Estimate(benchmark::State& state) { run_estimator(state, block_ops()); }
void BM_EstimatePortable(benchmark::State& state) { run_estimator(state, kPortableOps); }
BENCHMARK(BM_Estimate)
    ->ArgNames({"rows", "keys", "dim"})
    ->Args({16, 256, 128})
    ->Args({16, 128, 64})
    ->Args({1, 256, 128})
    ->Args({1, 4096, 128})
    ->Args({64, 512, 128})
    ->Args({16, 4096, 128});
BENCHMARK(BM_EstimatePortable)->ArgNames({"rows", "keys", "dim"})->Args({16, 256, 128});

// One violation certified with MPFR: a row of 256 keys, one column, escalation included.
void BM_CertifyViolation(benchmark::State& state) {
  TestHead head({.rows = 1, .slots = 256, .dim_k = 128, .dim_v = 128});
  const RowInputs inputs = row_inputs(head.block(), 0);
  const Profile profile = resolve_profile({});
  for (auto _ : state) {
    const Answer a = RowDecider(inputs, profile, DType::kF16).ask({.column = 0, .got = 100});
    if (a.decision != Decision::kViolates) state.SkipWithError("not a violation");
  }
}
BENCHMARK(BM_CertifyViolation)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kv::reference

BENCHMARK_MAIN();
