// Operations of the paged cache in a second: what a scheduler pays for each of them.
//   build/bin/cache_bench
#include <benchmark/benchmark.h>

#include "kvattn/paged_cache.h"

namespace kvattn {
namespace {

PagedCacheConfig config_of(int32_t batch) {
  return {.groups = {{.layers = 32}},
          .pages = PageCount(65536),
          .host_pages = PageCount(4096),
          .page_slots = 16,
          .batch_slots = batch,
          .requests = 2 * batch,
          .context_limit = SlotCount(8192),
          .step_slots_max = SlotCount(8192),
          .overcommit = 100};
}

std::vector<Token> tokens_of(uint64_t seed, int64_t count) {
  std::vector<Token> tokens(count);
  for (int64_t i = 0; i < count; ++i) tokens[i] = Token{(seed << 32) + i};
  return tokens;
}

Handle admit(PagedCache& cache, uint32_t id, std::span<const Token> prompt) {
  return *cache.admit({.request = RequestId{id}, .prompt = prompt, .slots_max = SlotCount(8192)});
}

void append(PagedCache& cache, uint32_t id, std::span<const Token> tokens) {
  const AppendRow row{.handle = *cache.find(RequestId{id}), .tokens = tokens};
  static_cast<void>(cache.complete(cache.step({&row, 1})->number));
}

/// One decode step of `batch` requests of 1,024 tokens; they are cut back before they outgrow.
void decode_step(benchmark::State& state) {
  const auto batch = static_cast<int32_t>(state.range(0));
  PagedCache cache = *PagedCache::create(config_of(batch));
  std::vector<AppendRow> rows;
  const auto one = tokens_of(9, 1);
  for (int32_t i = 0; i < batch; ++i) {
    const auto prompt = tokens_of(100 + i, 1024);
    admit(cache, i, {});
    append(cache, i, prompt);
    rows.push_back({.handle = *cache.find(RequestId(i)), .tokens = one});
  }
  for (auto _ : state) {
    const auto step = cache.step(rows);
    static_cast<void>(cache.complete(step->number));
    for (AppendRow& row : rows) row.handle.length += SlotCount(1);
    if (rows[0].handle.length.value < 8000) continue;
    state.PauseTiming();
    for (AppendRow& row : rows) {
      static_cast<void>(cache.truncate(row.handle, SlotCount(1024)));
      row.handle.length = SlotCount(1024);
    }
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(decode_step)->Arg(1)->Arg(64)->Arg(256);

/// Admission of a prompt whose pages are all published, and its end.
void admit_with_hit(benchmark::State& state) {
  PagedCache cache = *PagedCache::create(config_of(64));
  const auto prompt = tokens_of(1, state.range(0));
  admit(cache, 1, {});
  append(cache, 1, prompt);
  for (auto _ : state) {
    const Handle handle = admit(cache, 2, prompt);
    benchmark::DoNotOptimize(handle);
    static_cast<void>(cache.release(handle));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(admit_with_hit)->Arg(64)->Arg(1024)->Arg(8192);

/// A prompt that nobody has seen, served and ended: pages are published, then evicted.
void serve_new_prompt(benchmark::State& state) {
  PagedCache cache = *PagedCache::create(config_of(64));
  uint64_t seed = 0;
  for (auto _ : state) {
    const auto prompt = tokens_of(++seed, 1024);
    admit(cache, 1, prompt);
    append(cache, 1, prompt);
    static_cast<void>(cache.release(*cache.find(RequestId{1})));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(serve_new_prompt);

/// Eight beams of 1,000 tokens: one drops out, one doubles, all append: copy on write.
void reorder_and_append(benchmark::State& state) {
  PagedCache cache = *PagedCache::create(config_of(8));
  admit(cache, 0, {});
  append(cache, 0, tokens_of(1, 1000));
  std::vector<RequestId> beams = {RequestId{0}}, sources;
  for (uint32_t i = 1; i < 8; ++i) {
    static_cast<void>(cache.fork(*cache.find(RequestId{0}), RequestId{i}));
    beams.push_back(RequestId{i});
  }
  sources = beams;
  sources[7] = sources[0];
  uint64_t seed = 1;
  for (auto _ : state) {
    static_cast<void>(cache.reorder(beams, sources));
    std::vector<std::vector<Token>> tokens;
    std::vector<AppendRow> rows;
    for (RequestId beam : beams) {
      tokens.push_back(tokens_of(++seed, 1));
      rows.push_back({.handle = *cache.find(beam), .tokens = tokens.back()});
    }
    static_cast<void>(cache.complete(cache.step(rows)->number));
    if (rows[0].handle.length.value > 1015) {
      for (RequestId beam : beams) {
        static_cast<void>(cache.truncate(*cache.find(beam), SlotCount(1000)));
      }
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(reorder_and_append);

void swap_out_and_in(benchmark::State& state) {
  PagedCache cache = *PagedCache::create(config_of(8));
  admit(cache, 1, {});
  append(cache, 1, tokens_of(1, 1024));
  for (auto _ : state) {
    static_cast<void>(cache.preempt_to_host(*cache.find(RequestId{1})));
    static_cast<void>(cache.resume(*cache.find(RequestId{1})));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(swap_out_and_in);

}  // namespace
}  // namespace kvattn

BENCHMARK_MAIN();
