// history_campaign PLUGIN HISTORIES [SEED]: random histories on an engine in this process, judged
// after every operation. For speed: what may crash belongs into `kverify check --level engine`.
// Prints the first finding and exits with 1, or what was met and exits with 0; 2 for bad usage.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "harness/case/json.h"
#include "harness/case/names.h"
#include "harness/core/hash.h"
#include "harness/engine/engine_wire.h"
#include "harness/engine/local_engine.h"
#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "properties/engine_plugin.h"

namespace kv::props {
namespace {

using Clock = std::chrono::steady_clock;

// Hears every answer and every state on the way to the judge.
class Heard final : public Engine {
 public:
  Heard(Engine& engine, Hasher& hasher) : engine_(engine), hasher_(hasher) {}
  Answer perform(const Call& call) override {
    EngineReply reply{.answer = engine_.perform(call)};
    add(reply);
    return std::move(reply.answer);
  }
  Result<EngineState> snapshot(CacheKind cache) override {
    Result<EngineState> state = engine_.snapshot(cache);
    EngineReply reply;
    if (state.ok()) reply.target = *state;
    add(reply);
    return state;
  }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    return engine_.read(cache, places);
  }
  bool shift_turns() const override { return engine_.shift_turns(); }

 private:
  void add(const EngineReply& reply) {
    PagesTold told;
    hasher_.add_bytes(encode(reply, told));
  }
  Engine& engine_;
  Hasher& hasher_;
};

std::string met_text(const HistoryStats& stats) {
  std::string text = "met       ";
  size_t missing_pairs = 0;
  for (size_t i = 0; i < kOpKinds; ++i) {
    text += fmt::format(" {} {}", op_names()[i], stats.met[i]);
    for (size_t j = 0; j < kOpKinds; ++j) missing_pairs += stats.adjacent[i][j] == 0;
  }
  const EngineCounters& c = stats.counters;
  return text + fmt::format(
                    "\npairs      {} of {} pairs of adjacent operations\n"
                    "pages      {} hit, {} published, {} evicted, {} expired, {} fenced, {} slots "
                    "copied, {} swapped out, {} back in\n",
                    kOpKinds * kOpKinds - missing_pairs, kOpKinds * kOpKinds, c.hit_pages,
                    c.published_pages, c.evicted_pages, c.expired_pages, c.fenced_pages,
                    c.copied_slots, c.swapped_out_pages, c.swapped_in_pages);
}

bool all_met(const HistoryStats& stats) {
  for (const auto& row : stats.adjacent) {
    for (const uint64_t count : row) {
      if (count == 0) return false;
    }
  }
  return true;
}

int run(const std::string& path, uint64_t histories, uint64_t seed) {
  const kv_engine_level* level = load_engine(path);
  if (level == nullptr) {
    fmt::print(stderr, "{}: not a plugin with an engine level\n", path);
    return 2;
  }
  HistoryStats all;
  Hasher hasher;  // of all answers and states
  uint64_t unsupported = 0;
  const auto started = Clock::now();
  for (uint64_t i = 0; i < histories; ++i) {
    PhiloxSource choices(seed, i);
    const Case c = draw_history(choices, {});
    auto engine = LocalEngine::create(*level, c);
    if (!engine.ok() && engine.error().kind == ErrorKind::kUnsupported) {
      ++unsupported;
      continue;
    }
    if (!engine.ok()) {
      fmt::print("history {}: {}\n", i, engine.error().message);
      return 1;
    }
    Heard heard(**engine, hasher);
    const HistoryResult result = run_history(c, heard, {});
    all += result.stats;
    if (!result.finding) continue;
    const HistoryFinding& f = *result.finding;
    fmt::print("history {} of seed {}: found by {}: ops[{}], {}: {}\n{}", i, seed,
               check_name(f.check), f.op_index, f.operation, f.message, case_to_json(c));
    return 1;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  fmt::print(
      "histories  {} with seed {}, {} unsupported; {} operations, {} calls: {} ok, {} "
      "refused, {} without room; {} slots read\n{}",
      histories, seed, unsupported, all.operations, all.calls, all.succeeded, all.refused,
      all.exhausted, all.slots_read, met_text(all));
  fmt::print("digest     {:016x} of all answers and states\n", hasher.digest());
  fmt::print("time       {:.1f} s, {:.0f} operations/s (never compared)\n", seconds,
             static_cast<double>(all.operations) / seconds);
  return histories < 1000 || all_met(all) ? 0 : 1;
}

}  // namespace
}  // namespace kv::props

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: history_campaign PLUGIN HISTORIES [SEED]\n");
    return 2;
  }
  return kv::props::run(argv[1], std::strtoull(argv[2], nullptr, 10),
                        argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
}
