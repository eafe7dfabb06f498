// Fuzz target: a history of operations on the production cache and engine, judged after every
// operation. Host code alone: there are no kernels behind it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/bench.h"
#include "fuzz/case_target.h"
#include "fuzz/finding.h"
#include "fuzz/guidance.h"
#include "harness/engine/local_engine.h"
#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv::fuzzing {
namespace {

const kv_engine_level*& level() {
  static const kv_engine_level* level = nullptr;
  return level;
}
uint32_t& operations_max() {
  static uint32_t most = 60;
  return most;
}

void open() {
  const std::string path = find_library("KVERIFY_FUZZ_PLUGIN", "libkvattn_host_plugin.so");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto entry =
      handle == nullptr
          ? nullptr
          : reinterpret_cast<const kv_plugin* (*)()>(dlsym(handle, "kverify_plugin_v1"));
  if (entry != nullptr) level() = entry()->engine;
  if (level() != nullptr) return;
  std::fprintf(stderr, "fuzz: %s: expected a plugin with an engine level: %s\n", path.c_str(),
               handle == nullptr ? dlerror() : "it has none");
  std::_Exit(3);
}

bool set_limit(std::string_view name, uint32_t value) {
  if (name != "operations" || value == 0) return false;
  operations_max() = value;
  return true;
}

Case draw(ChoiceSource& choices) {
  return draw_history(choices, {.operations_max = operations_max()});
}

bool fits(const Case& c) { return c.engine.has_value() && c.ops.size() <= 4 * operations_max(); }

/// How far a counter of the engine got, in powers of two.
void note_amount(uint32_t counter, uint64_t amount) {
  uint32_t log = 0;
  for (; amount > 0; amount >>= 1) ++log;
  if (log > 0) note(512 + counter * 16 + std::min(log, 15U));
}

void guide(const HistoryStats& stats) {
  for (size_t i = 0; i < kOpKinds; ++i) {
    for (size_t j = 0; j < kOpKinds; ++j) {
      if (stats.adjacent[i][j] > 0) note(static_cast<uint32_t>(i * kOpKinds + j));
    }
  }
  const EngineCounters& c = stats.counters;
  uint32_t counter = 0;
  for (const uint64_t amount :
       {c.hit_pages, c.published_pages, c.evicted_pages, c.expired_pages, c.fenced_pages,
        c.copied_slots, c.swapped_out_pages, c.swapped_in_pages, stats.refused, stats.exhausted}) {
    note_amount(counter++, amount);
  }
}

void run(const Case& c) {
  auto engine = LocalEngine::create(*level(), c);
  if (!engine.ok() && engine.error().kind == ErrorKind::kUnsupported) return;
  if (!engine.ok()) end_with_finding(c, "error: " + engine.error().message);
  const HistoryResult result = run_history(c, **engine, {});
  guide(result.stats);
  if (!result.finding) return;
  const HistoryFinding& f = *result.finding;
  end_with_finding(c, fmt::format("{}: ops[{}], {}: {}", check_name(f.check), f.op_index,
                                  f.operation, f.message));
}

}  // namespace

const CaseTarget& case_target() {
  static constexpr CaseTarget target{.open = open,
                                     .set_limit = set_limit,
                                     .draw = draw,
                                     .fits = fits,
                                     .run = run,
                                     .operations = 60,
                                     .draws_anew = true};
  return target;
}

}  // namespace kv::fuzzing
